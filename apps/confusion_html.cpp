#include "apps/confusion_html.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/html.h"
#include "framework/text.h"

namespace twiddle {
namespace {

constexpr std::size_t most_classes_in_a_matrix = 40, most_rows = 20, longest_level_heading = 3;

// One class: how many images it has, and how many of them were known.
struct Row {
  std::size_t actual = 0;
  std::vector<std::int64_t> counts{};  // by what was predicted
  std::int64_t images = 0;

  double share(std::size_t predicted) const {
    return images > 0 ? static_cast<double>(counts[predicted]) / static_cast<double>(images) : 0;
  }
  std::string percent(std::size_t predicted) const {
    return images > 0 ? fmt::format("{:.0f}%", 100 * share(predicted)) : "-";
  }
  // The other class that it was most often taken for.
  std::size_t likeliest_mistake() const {
    std::size_t worst = actual == 0 && counts.size() > 1 ? 1 : 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (i != actual && counts[i] > counts[worst]) worst = i;
    return worst;
  }
};

std::vector<Row> rows_of(std::size_t classes, const std::vector<std::int64_t>& confusion) {
  std::vector<Row> rows;
  for (auto begin = confusion.begin(); begin != confusion.end(); begin += static_cast<std::ptrdiff_t>(classes)) {
    Row row{rows.size(), {begin, begin + static_cast<std::ptrdiff_t>(classes)}};
    row.images = std::accumulate(row.counts.begin(), row.counts.end(), std::int64_t{0});
    rows.push_back(row);
  }
  return rows;
}

// Long names stand upright, so that twenty of them fit a page.
std::string headings(const std::vector<std::string>& classes) {
  const bool turned = std::any_of(classes.begin(), classes.end(),
                                  [](const std::string& name) { return name.size() > longest_level_heading; });
  std::string html = turned ? "<tr class=\"turned\"><th></th>" : "<tr><th></th>";
  for (const std::string& name : classes) html += "<th><span>" + escape_html(name) + "</span></th>";
  return html + "<th><span>known</span></th></tr>\n";
}

std::string matrix(const std::vector<std::string>& classes, const std::vector<Row>& rows) {
  std::string html = "<p>Rows: what it is. Columns: what the network says.</p>\n";
  html += fmt::format("<div class=\"scroll\"><table class=\"matrix\" style=\"--classes:{}\">\n", classes.size());
  html += headings(classes);
  for (const Row& row : rows) {
    html += "<tr><th>" + escape_html(classes[row.actual]) + "</th>";
    for (std::size_t predicted = 0; predicted < classes.size(); ++predicted)
      html += fmt::format("<td style=\"background:rgba({},{:.2f})\">{}</td>",
                          predicted == row.actual ? "46,139,87" : "210,60,30", 0.75 * std::sqrt(row.share(predicted)),
                          row.counts[predicted] > 0 ? std::to_string(row.counts[predicted]) : "");
    html += "<td>" + row.percent(row.actual) + "</td></tr>\n";
  }
  return html + "</table></div>\n";
}

std::string confused_pairs(const std::vector<std::string>& classes, const std::vector<Row>& rows) {
  struct Pair {
    const Row* row;
    std::size_t predicted;
    std::int64_t count() const { return row->counts[predicted]; }
  };
  std::vector<Pair> pairs;
  for (const Row& row : rows)
    for (std::size_t predicted = 0; predicted < classes.size(); ++predicted)
      if (predicted != row.actual && row.counts[predicted] > 0) pairs.push_back({&row, predicted});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.count() > b.count(); });
  if (pairs.size() > most_rows) pairs.resize(most_rows);
  std::string html =
      "<table class=\"names\">\n" + html_row("th", {"what it is", "what the network says", "images", ""});
  for (const Pair& pair : pairs)
    html += html_row("td", {classes[pair.row->actual], classes[pair.predicted], format_count(pair.count()),
                            pair.row->percent(pair.predicted)});
  return html + "</table>\n";
}

std::string hardest_classes(const std::vector<std::string>& classes, std::vector<Row> rows) {
  rows.erase(std::remove_if(rows.begin(), rows.end(), [](const Row& row) { return row.images == 0; }), rows.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.share(a.actual) < b.share(b.actual); });
  if (rows.size() > most_rows) rows.resize(most_rows);
  std::string html = "<table class=\"names\">\n" + html_row("th", {"class", "most often taken for", "images", "known"});
  for (const Row& row : rows) {
    const std::size_t mistake = row.likeliest_mistake();
    html +=
        html_row("td", {classes[row.actual], row.counts[mistake] > 0 && mistake != row.actual ? classes[mistake] : "-",
                        format_count(row.images), row.percent(row.actual)});
  }
  return html + "</table>\n";
}

}  // namespace

std::string confusion_html(const std::vector<std::string>& classes, const std::vector<std::int64_t>& confusion) {
  const std::vector<Row> rows = rows_of(classes.size(), confusion);
  if (classes.size() <= most_classes_in_a_matrix) return matrix(classes, rows);
  return "<div class=\"beside\">\n<div class=\"scroll\"><h3>Most often confused</h3>\n" +
         confused_pairs(classes, rows) + "</div>\n<div class=\"scroll\"><h3>Least often known</h3>\n" +
         hardest_classes(classes, rows) + "</div>\n</div>\n";
}

}  // namespace twiddle
