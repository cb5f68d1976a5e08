#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {

namespace {

constexpr std::size_t widest_line = 110, most_messages = 100;

// Whether a string has more than `most` characters.
bool has_more_than(std::size_t most, std::string_view text) {
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == most) return true;
    text.remove_prefix(first_character(text).bytes.size());
  }
  return false;
}

std::string quote_line(const Place& place, const std::string& hint) {
  // Only the part around the column of a long line is shown. Terminal control characters are shown as blanks.
  std::string_view line = place.source->lines[static_cast<std::size_t>(place.line - 1)];
  const std::size_t wanted = static_cast<std::size_t>(std::max(place.column, 1)) - 1;
  const std::size_t begin = has_more_than(widest_line, line) && wanted > widest_line / 2 ? wanted - widest_line / 2 : 0;
  std::string shown;
  std::size_t end = 0;
  for (; !line.empty() && end < begin + widest_line; ++end) {
    const Character character = first_character(line);
    if (end >= begin) shown += character.is_utf8 && !is_printable(character) ? " " : printable(character.bytes);
    line.remove_prefix(character.bytes.size());
  }
  const std::size_t column = std::clamp(wanted, begin, std::max(begin, end));

  std::string number = std::to_string(place.line);
  if (number.size() < 5) number.insert(0, 5 - number.size(), ' ');
  const std::size_t length =
      std::min(static_cast<std::size_t>(std::max(place.length, 1)), std::max(end, column + 1) - column);
  std::string text = number + " | " + shown + "\n";
  text +=
      std::string(number.size(), ' ') + " | " + std::string(column - begin, ' ') + '^' + std::string(length - 1, '~');
  return text + (hint.empty() ? "" : " " + hint) + "\n";
}

}  // namespace

std::string to_string(const Place& place) {
  if (place.source == nullptr) return {};
  const std::string name = printable(place.source->name);
  return place.line <= 0 ? name : join(name, ":", place.line, ":", place.column);
}

void Diagnostics::add(const Place& place, std::string message, std::string hint) {
  messages_.push_back({place, printable(message), printable(hint)});  // both may hold what the file says
}

// In order of place; sources in the order in which they were first complained of. A repeated message for one place (a
// layer inside a `repeat`) appears once.
std::vector<const Diagnostics::Message*> Diagnostics::ordered() const {
  std::map<const SourceText*, std::size_t> rank;
  std::vector<const Message*> all;
  std::set<std::tuple<const SourceText*, int, int, std::string>> seen;
  for (const Message& message : messages_) {
    const Place& place = message.place;
    rank.emplace(place.source.get(), rank.size());
    if (seen.emplace(place.source.get(), place.line, place.column, message.message).second) all.push_back(&message);
  }
  const auto order = [&rank](const Message* message) {
    return std::tuple(rank[message->place.source.get()], message->place.line, message->place.column);
  };
  std::stable_sort(all.begin(), all.end(), [&](const Message* a, const Message* b) { return order(a) < order(b); });
  return all;
}

std::string Diagnostics::text() const {
  std::string text;
  std::vector<const Message*> messages = ordered();
  const std::size_t count = messages.size();
  messages.resize(std::min(count, most_messages));
  for (const Message* message : messages) {
    const Place& place = message->place;
    const std::string where = to_string(place);
    text += (where.empty() ? "" : where + ": ") + "error: " + message->message + "\n";
    const bool has_line =
        place.source != nullptr && place.line > 0 && static_cast<std::size_t>(place.line) <= place.source->lines.size();
    if (has_line) {
      text += quote_line(place, message->hint);
    } else if (!message->hint.empty()) {
      text += "  " + message->hint + "\n";
    }
  }
  if (count > most_messages) text += join("and ", count - most_messages, " more\n");
  return text;
}

void Diagnostics::throw_if_any() const {
  if (messages_.empty()) return;
  const std::size_t count = ordered().size();
  throw Error(ErrorKind::config, join(text(), count, count == 1 ? " error" : " errors", "; nothing was run."));
}

}  // namespace twiddle
