#include "apps/verbs/report.h"
#include "models/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "apps/report/confusion_html.h"
#include "apps/report/html.h"
#include "apps/report/run_charts.h"
#include "apps/report/svg.h"
#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

// Checks that tags are balanced and nested; only void elements may be without an end tag.
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
  report.facts = {{"device", {"cpu", "precision fp32"}}};
  report.config = "name: <digits>\n";
  report.examined = "epoch 1, the best";
  for (int step = 1; step <= 5; ++step) {
    StepReport line;
    line.step = step, line.loss = 1.0 / step, line.rate = 0.1;
    report.history.steps.push_back(line);
  }
  EpochReport epoch;
  epoch.epoch = 1, epoch.step = 5, epoch.has_validation = true, epoch.val.top1 = 0.5;
  report.history.epochs.push_back(epoch);
  report.classes = {"cat", "<script>"};
  EvalResult validation;
  validation.confusion = {{{0, 0}, 3}, {{0, 1}, 1}, {{1, 1}, 4}};
  report.validation = std::make_shared<EvalResult>(validation);
  report.filters = {{Image{1, 2, 2, {0, 80, 160, 240}}, ""}};
  report.mistakes = {{Image{3, 1, 1, {1, 2, 3}}, "cat predicted as <script>, 90%"}};
  report.layers = {{"conv1", "conv2d", "3x3", {1, 8, 8}, {4, 6, 6}, 40, 1e6, 576}};
  return report;
}

TEST(Report, IsSelfContained) {
  const std::string html = report_html(small_report());
  expect_well_formed(html);
  for (const char* part : {"<svg", "polyline", "data:image/png;base64,", "Confusion", "Most confident mistakes",
                           "conv1", "color-scheme: light dark", "Learning rate"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
  for (const char* outside : {"http:", "https:", "<script", "<link", "url("})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  EXPECT_NE(html.find("Run of &lt;digits&gt; &amp; &quot;friends&quot;"), std::string::npos);
}

TEST(Report, ShowsConfigAndEpochOfMistakes) {
  const std::string html = report_html(small_report());
  EXPECT_NE(html.find("<span>cpu</span> <span>precision fp32</span>"), std::string::npos);
  EXPECT_NE(html.find("<details><summary>config.yaml</summary><pre>name: &lt;digits&gt;"), std::string::npos);
  EXPECT_EQ(count(html, "epoch 1, the best"), 2u);  // above the mistakes and above the matrix
}

TEST(Confusion, LargeTableScrolls) {
  Confusion all;
  for (std::int64_t pair = 0; pair < 400; ++pair) all[{pair / 20, pair % 20}] = 1;
  const std::string html = confusion_html(std::vector<std::string>(20, "a long name"), all);
  expect_well_formed(html);
  EXPECT_NE(html.find("<div class=\"scroll\">"), std::string::npos);
  EXPECT_NE(html.find("<tr class=\"turned\">"), std::string::npos);
  EXPECT_EQ(count(html, "<td>5%</td>"), 20u);  // one of the twenty images of each was known
}

TEST(Confusion, ShortNamesAreNotRotated) {
  EXPECT_EQ(confusion_html({"0", "1"}, {{{0, 0}, 1}, {{1, 1}, 1}}).find("turned"), std::string::npos);
}

TEST(Confusion, ManyClassesShowWorstPairs) {
  std::vector<std::string> classes(1000, "thing");
  classes[5] = "axe", classes[7] = "bow", classes[9] = "cup";
  const std::string html = confusion_html(classes, {{{5, 5}, 10}, {{5, 7}, 30}, {{9, 9}, 8}});
  expect_well_formed(html);
  EXPECT_LT(html.size(), 10000u);
  EXPECT_NE(html.find("<td>axe</td><td>bow</td><td>30</td><td>75%</td>"), std::string::npos);
  EXPECT_NE(html.find("<td>axe</td><td>bow</td><td>40</td><td>25%</td>"), std::string::npos);
  EXPECT_NE(html.find("<td>cup</td><td>-</td><td>8</td><td>100%</td>"), std::string::npos);
}

TEST(Report, EmptyRunIsWellFormed) {
  expect_well_formed(report_html({}));
}

History history_of(std::int64_t epochs, std::int64_t steps) {
  History history;
  for (std::int64_t i = 1; i <= epochs * steps; ++i) {
    StepReport step;
    step.step = i, step.loss = i % 2 == 0 ? 1 : 2, step.rate = 0.1, step.images_per_second = 1000;
    history.steps.push_back(step);
  }
  for (std::int64_t i = 1; i <= epochs; ++i) {
    EpochReport epoch;
    epoch.epoch = i, epoch.step = i * steps, epoch.has_validation = true, epoch.val.top1 = 0.5;
    history.epochs.push_back(epoch);
  }
  return history;
}

TEST(RunCharts, ShareOneEpochAxis) {
  const std::vector<std::string> charts = run_charts(history_of(12, 10));
  ASSERT_EQ(charts.size(), 4u);
  for (const std::string& chart : charts) {
    expect_well_formed(chart);
    EXPECT_NE(chart.find("x=\"58.0\" y=\"256\" text-anchor=\"middle\">0<"), std::string::npos) << chart;
    EXPECT_NE(chart.find("x=\"376.3\" y=\"256\" text-anchor=\"middle\">10<"), std::string::npos) << chart;
  }
}

TEST(RunCharts, UseIntegerTicksForSteps) {
  History history = history_of(1, 2);
  history.epochs.clear();
  for (const std::string& chart : run_charts(history)) {
    EXPECT_EQ(count(chart, "y=\"256\" text-anchor"), 3u) << chart;  // 0, 1, 2
    EXPECT_NE(chart.find(">step<"), std::string::npos);
  }
}

TEST(RunCharts, ShowSmoothedAndRawLoss) {
  const std::string loss = run_charts(history_of(10, 50)).front();
  EXPECT_EQ(count(loss, " pale\""), 1u);
  EXPECT_EQ(count(loss, ">training<"), 1u);
}

TEST(RunCharts, LimitSizeOfLongRuns) {
  EXPECT_LT(run_charts(history_of(1000, 50)).front().size(), 40000u);
}

TEST(Svg, OmitsNonFiniteValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::string svg =
      Chart{.title = "Loss", .curves = {{"a", {{0, 1}, {1, infinity}, {2, std::nan("")}, {3, 0.5}}}}}.svg();
  expect_well_formed(svg);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Svg, DrawsFlatAndSingleCurves) {
  const std::string flat = Chart{.title = "Rate", .curves = {{"a", {{0, 0.1}, {1, 0.1}}}}}.svg();
  expect_well_formed(flat);
  EXPECT_NE(flat.find(">0.1<"), std::string::npos);
  EXPECT_NE((Chart{.title = "Top-1", .curves = {{"a", {{4, 0.5}}}}}.svg().find("<circle")), std::string::npos);
}

TEST(Svg, FitsAxesAndUsesRoundTicks) {
  const std::string svg = Chart{.title = "", .curves = {{"a", {{0, 1}, {22, 3}}}}}.svg();
  EXPECT_NE(svg.find("440.0,44.0"), std::string::npos);
  EXPECT_EQ(svg.find(">30<"), std::string::npos);
  EXPECT_NE(svg.find(">20<"), std::string::npos);
}

TEST(Svg, DrawsExtremeValues) {
  for (const double value : {1e-310, 1e100, -1e100})
    expect_well_formed(Chart{.title = "", .curves = {{"a", {{0, value}, {1, 0}}}}}.svg());
}

TEST(Svg, MarksHorizontalLine) {
  const std::string svg = Chart{.title = "", .curves = {{"a", {{0, 2}, {1, 3}}}}, .mark = 1}.svg();
  EXPECT_EQ(count(svg, "class=\"mark\""), 1u);
  EXPECT_NE(svg.find(">1<"), std::string::npos);
}

TEST(Base64, MatchesExamplesOfStandard) {
  const auto encode = [](const std::string& text) { return base64({text.begin(), text.end()}); };
  EXPECT_EQ(encode(""), "");
  EXPECT_EQ(encode("f"), "Zg==");
  EXPECT_EQ(encode("fo"), "Zm8=");
  EXPECT_EQ(encode("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace twiddle
