#include "apps/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "apps/base64.h"
#include "apps/svg.h"

namespace twiddle {
namespace {

// Every tag that opens closes, in order; none but those that never hold anything may stand alone.
void expect_well_formed(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = html.substr(at + 1, end - at - 1);
    if (tag[0] == '!' || tag.back() == '/') continue;
    const std::string name = tag.substr(tag[0] == '/', tag.find_first_of(" \n") - (tag[0] == '/'));
    if (tag[0] != '/') {
      open.push_back(name);
    } else {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(open.back(), name);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

Report small_report() {
  Report report;
  report.title = "Run of <digits> & \"friends\"";
  report.facts = {{"device", "cpu"}};
  for (int step = 1; step <= 5; ++step) {
    StepReport line;
    line.step = step, line.loss = 1.0 / step, line.rate = 0.1;
    report.history.steps.push_back(line);
  }
  EpochReport epoch;
  epoch.step = 5, epoch.has_validation = true, epoch.val_top1 = 0.5;
  report.history.epochs.push_back(epoch);
  report.classes = {"cat", "<script>"};
  report.confusion = {3, 1, 0, 4};
  report.filters = {{Image{1, 2, 2, {0, 80, 160, 240}}, ""}};
  report.mistakes = {{Image{3, 1, 1, {1, 2, 3}}, "cat taken for <script>, 90%"}};
  report.layers = {{"conv1", "conv2d", "3x3", {1, 8, 8}, {4, 6, 6}, 40, 1e6, 576}};
  return report;
}

TEST(Report, HoldsEverythingAndNeedsNothingFromOutside) {
  const std::string html = report_html(small_report());
  expect_well_formed(html);
  for (const char* part : {"<svg", "polyline", "data:image/png;base64,", "Confusion", "Surest mistakes", "conv1",
                           "color-scheme: light dark", "Learning rate"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* outside : {"http:", "https:", "<script", "<link", "url("})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  EXPECT_NE(html.find("Run of &lt;digits&gt; &amp; &quot;friends&quot;"), std::string::npos);
}

TEST(Report, ManyClassesAreListedAsPairs) {
  Report report = small_report();
  report.classes.assign(1000, "thing");
  report.confusion.assign(1000 * 1000, 0);
  report.confusion[5] = 7;  // class 0 taken for class 5
  const std::string html = report_html(report);
  expect_well_formed(html);
  EXPECT_LT(html.size(), 100000u);
  EXPECT_NE(html.find("<td>7</td>"), std::string::npos);
}

TEST(Report, AnEmptyRunIsStillAPage) {
  expect_well_formed(report_html({}));
}

TEST(Svg, LeavesOutWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string svg = line_chart("Loss", "step", {{"a", {{0, 1}, {1, infinity}, {2, std::nan("")}, {3, 0.5}}}});
  expect_well_formed(svg);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Svg, DrawsFlatAndSingleCurves) {
  expect_well_formed(line_chart("Rate", "step", {{"a", {{0, 0}, {1, 0}}}}));
  EXPECT_NE(line_chart("Top-1", "step", {{"a", {{4, 0.5}}}}).find("<circle"), std::string::npos);
}

TEST(Base64, KnowsTheExamplesOfTheStandard) {
  const auto encode = [](const std::string& text) { return base64({text.begin(), text.end()}); };
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace twiddle
