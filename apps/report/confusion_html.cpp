#include "apps/report/confusion_html.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/report/html.h"
#include "framework/text.h"

namespace twiddle {
namespace {

constexpr std::size_t most_classes_in_a_matrix = 40, most_rows = 20, longest_level_heading = 3;

double part_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? fmt::format("{:.0f}%", 100 * part_of(part, whole)) : "-";
}

// One class: its number of images, how many were predicted correctly, and the most frequent wrong prediction.
struct Row {
  std::size_t actual = 0;
  std::int64_t images = 0, known = 0, mistakes = 0;
  std::size_t mistake = 0;  // predicted for `mistakes` images; valid if that is not 0

  double share_known() const { return part_of(known, images); }
};

std::vector<Row> rows_of(std::size_t classes, const Confusion& confusion) {
  std::vector<Row> rows(classes);
  for (std::size_t actual = 0; actual < classes; ++actual) rows[actual].actual = actual;
  for (const auto& [pair, images] : confusion) {
    Row& row = rows[static_cast<std::size_t>(pair.first)];
    row.images += images;
    if (pair.first == pair.second) row.known = images;
    if (pair.first != pair.second && images > row.mistakes)
      row.mistakes = images, row.mistake = static_cast<std::size_t>(pair.second);
  }
  return rows;
}

// Long names are written vertically, so that twenty of them fit a page.
std::string headings(const std::vector<std::string>& classes) {
  const bool turned = std::any_of(classes.begin(), classes.end(),
                                  [](const std::string& name) { return name.size() > longest_level_heading; });
  std::string html = turned ? "<tr class=\"turned\"><th></th>" : "<tr><th></th>";
  for (const std::string& name : classes) html += "<th><span>" + escape_html(name) + "</span></th>";
  return html + "<th><span>known</span></th></tr>\n";
}

std::string matrix(const std::vector<std::string>& classes, const std::vector<Row>& rows, const Confusion& confusion) {
  std::string html = "<p>Rows: true class. Columns: predicted class.</p>\n";
  html += fmt::format("<div class=\"scroll\"><table class=\"matrix\" style=\"--classes:{}\">\n", classes.size());
  html += headings(classes);
  for (const Row& row : rows) {
    html += "<tr><th>" + escape_html(classes[row.actual]) + "</th>";
    for (std::size_t predicted = 0; predicted < classes.size(); ++predicted) {
      const auto cell = confusion.find(std::pair<std::int64_t, std::int64_t>(row.actual, predicted));
      const std::int64_t images = cell == confusion.end() ? 0 : cell->second;
      html += fmt::format("<td style=\"background:rgba({},{:.2f})\">{}</td>",
                          predicted == row.actual ? "46,139,87" : "210,60,30",
                          0.75 * std::sqrt(part_of(images, row.images)), images > 0 ? std::to_string(images) : "");
    }
    html += "<td>" + percent(row.known, row.images) + "</td></tr>\n";
  }
  return html + "</table></div>\n";
}

std::string confused_pairs(const std::vector<std::string>& classes, const std::vector<Row>& rows,
                           const Confusion& confusion) {
  std::vector<const Confusion::value_type*> pairs;
  for (const Confusion::value_type& cell : confusion)
    if (cell.first.first != cell.first.second) pairs.push_back(&cell);
  const std::size_t shown = std::min(pairs.size(), most_rows);
  std::partial_sort(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(shown), pairs.end(),
                    [](const auto* a, const auto* b) {
                      return a->second != b->second ? a->second > b->second : a->first < b->first;
                    });
  pairs.resize(shown);
  std::string html = "<table class=\"names\">\n" + html_row("th", {"true class", "predicted class", "images", ""});
  for (const auto* const cell : pairs) {
    const Row& row = rows[static_cast<std::size_t>(cell->first.first)];
    html += html_row("td", {classes[row.actual], classes[static_cast<std::size_t>(cell->first.second)],
                            format_count(cell->second), percent(cell->second, row.images)});
  }
  return html + "</table>\n";
}

std::string hardest_classes(const std::vector<std::string>& classes, std::vector<Row> rows) {
  std::erase_if(rows, [](const Row& row) { return row.images == 0; });
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.share_known() < b.share_known(); });
  if (rows.size() > most_rows) rows.resize(most_rows);
  std::string html =
      "<table class=\"names\">\n" + html_row("th", {"class", "most often predicted as", "images", "known"});
  for (const Row& row : rows)
    html += html_row("td", {classes[row.actual], row.mistakes > 0 ? classes[row.mistake] : "-",
                            format_count(row.images), percent(row.known, row.images)});
  return html + "</table>\n";
}

}  // namespace

std::string confusion_html(const std::vector<std::string>& classes, const Confusion& confusion) {
  const std::vector<Row> rows = rows_of(classes.size(), confusion);
  if (classes.size() <= most_classes_in_a_matrix) return matrix(classes, rows, confusion);
  return "<div class=\"columns\">\n<div class=\"scroll\"><h3>Most often confused</h3>\n" +
         confused_pairs(classes, rows, confusion) + "</div>\n<div class=\"scroll\"><h3>Least often known</h3>\n" +
         hardest_classes(classes, rows) + "</div>\n</div>\n";
}

}  // namespace twiddle
