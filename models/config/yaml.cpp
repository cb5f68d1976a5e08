#include "models/config/yaml.h"

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {

namespace {

constexpr std::size_t deepest = 64, most_values = 100000;
constexpr const char* no_aliases = "aliases ('*name') are not supported";
constexpr const char* instead_of_alias = "write the value out, or put quotes around a string that starts with '*'";

// Thrown through the parser if continuing is pointless; the reason is in the diagnostics.
struct Stop {};

// Line ends of every kind as '\n', and no byte order mark.
std::string with_plain_ends(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = text.rfind("\xEF\xBB\xBF", 0) == 0 ? 3 : 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    result += text[i] == '\r' ? '\n' : text[i];
  }
  return result;
}

// The first byte that belongs to no UTF-8 text; its size where there is none.
std::size_t find_binary(std::string_view text) {
  const std::size_t size = text.size();
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool control =
        (character.code < 0x20 || character.code == 0x7f) && character.code != '\n' && character.code != '\t';
    if (!character.is_utf8 || control) break;
    text.remove_prefix(character.bytes.size());
  }
  return size - text.size();
}

std::ptrdiff_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xc0) != 0x80; });
}

// Whether a quote that begins there has no partner; the parser takes the end of the file for one.
bool is_unclosed_quote(const std::string& text, std::size_t begin) {
  const char quote = begin < text.size() ? text[begin] : '\0';
  if (quote != '"' && quote != '\'') return false;
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == quote) return false;
    if (quote == '"' && text[i] == '\\') ++i;
  }
  return true;
}

// The '-' of an empty item of a list: it ends the last line with content before the mark, except for a comment.
YAML::Mark dash_before(const std::string& text, const YAML::Mark& mark) {
  YAML::Mark dash = mark;
  std::size_t end = std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text.size());
  for (;; --dash.line) {
    const std::size_t begin = end == 0 ? 0 : text.rfind('\n', end - 1) + 1;  // npos + 1 is 0
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    const std::size_t found = line.substr(0, line.find('#')).rfind('-');
    if (found != line.npos) dash.column = static_cast<int>(found);
    if (found != line.npos) return dash;
    if (begin == 0) return mark;
    end = begin - 1;
  }
}

// Turns the parser's events into a tree.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, std::shared_ptr<const SourceText> source, Diagnostics& diagnostics)
      : text_(text), source_(std::move(source)), diagnostics_(diagnostics) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      refuse(place(mark), "a second document in one file", "a config is one document: remove the '---'");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    ConfigNode node = make(mark, "", anchor, ConfigNode::Kind::null);
    // An absent value has no place; the parser reports the place of the next token.
    if (!open_.empty() && open_.back().has_key) node.place = open_.back().node.entries.back().place;
    if (!open_.empty() && open_.back().is_block_list()) node.place = place(dash_before(text_, mark));
    add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(place(mark), no_aliases, instead_of_alias); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    ConfigNode node = make(mark, tag, anchor, ConfigNode::Kind::scalar);
    node.text = value;
    node.quoted = tag == "!";
    if (node.quoted && is_unclosed_quote(text_, static_cast<std::size_t>(std::max(mark.pos, 0))))
      refuse(node.place, "not valid YAML: this quote is never closed");
    node.place.length = static_cast<int>(count_characters(value)) + (node.quoted ? 2 : 0);
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, ConfigNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, ConfigNode::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

  Place place(const YAML::Mark& mark) const {
    if (source_->lines.empty()) return {source_, 0, 0, 1};
    const auto line =
        static_cast<std::size_t>(std::clamp<int>(mark.line, 0, static_cast<int>(source_->lines.size()) - 1));
    const std::string& text = source_->lines[line];
    const auto column =
        std::min(static_cast<std::size_t>(std::max(mark.column, 0)), text.size());  // the parser's: bytes
    // Counted on from the last place, or a long line would be counted again for each of its values.
    if (line != last_line_ || column < last_column_) last_line_ = line, last_column_ = 0, last_characters_ = 0;
    last_characters_ += count_characters(std::string_view(text).substr(last_column_, column - last_column_));
    last_column_ = column;
    return {source_, static_cast<int>(line) + 1, static_cast<int>(last_characters_) + 1, 1};
  }

  // Where a [ or { was opened that is still open.
  const ConfigNode* open_bracket() const {
    const auto bracket = std::find_if(open_.rbegin(), open_.rend(), [](const Open& open) { return open.flow; });
    return bracket == open_.rend() ? nullptr : &bracket->node;
  }
  ConfigNode take() { return std::move(root_); }

 private:
  // A mapping or list whose end has not been seen yet.
  struct Open {
    ConfigNode node;
    bool flow = false, has_key = false;  // has_key: the last entry waits for its value
    std::map<std::string, int> key_lines;

    bool is_block_list() const { return !flow && node.kind == ConfigNode::Kind::sequence; }
  };

  [[noreturn]] void refuse(const Place& place, const std::string& what, const std::string& hint = {}) const {
    diagnostics_.add(place, what, hint);
    throw Stop{};
  }

  ConfigNode make(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, ConfigNode::Kind kind) {
    if (anchor != 0)
      refuse(place(mark), "anchors ('&name') are not supported",
             "write the value out where it is needed; 'repeat:' repeats layers");
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(place(mark), "tags ('!" + shown(tag.substr(tag.find_last_of(":!") + 1)) + "') are not supported",
             "put quotes around a string that starts with '!'");
    ConfigNode node;
    node.kind = kind;
    node.place = place(mark);
    if (++values_ > most_values) refuse(node.place, join("more than ", most_values, " values: this is not a config"));
    return node;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value style,
            ConfigNode::Kind kind) {
    if (open_.size() >= deepest) refuse(place(mark), join("nested more than ", deepest, " levels deep"));
    Open opened;
    opened.node = make(mark, tag, anchor, kind);
    opened.flow = style == YAML::EmitterStyle::Flow;
    open_.push_back(std::move(opened));
  }

  void close() {
    ConfigNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(ConfigNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Open& parent = open_.back(); parent.node.kind == ConfigNode::Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.has_key) {
      parent.has_key = false;
      parent.node.entries.back().value = std::move(node);
      const ConfigNode::Entry& entry = parent.node.entries.back();
      const auto [first, is_new] = parent.key_lines.emplace(entry.key, entry.place.line);
      if (is_new) return;
      diagnostics_.add(entry.place, join("duplicate key '", shown(entry.key), "'",
                                         first->second > 0 ? join(" (first at line ", first->second, ")") : ""));
      parent.node.entries.pop_back();
    } else {
      add_key(parent, node);
    }
  }

  void add_key(Open& parent, const ConfigNode& node) const {
    if (node.kind != ConfigNode::Kind::scalar)
      refuse(node.place, "a key must be a string", "put quotes around ${...} inside { } and [ ]");
    if (node.text == "<<" && !node.quoted)
      refuse(node.place, "merge keys ('<<') are not supported", "a file includes another by 'base: FILE'");
    parent.has_key = true;
    parent.node.entries.push_back({node.text, node.place, {}});
  }

  const std::string& text_;
  std::shared_ptr<const SourceText> source_;
  Diagnostics& diagnostics_;
  std::vector<Open> open_;
  ConfigNode root_;
  std::size_t documents_ = 0, values_ = 0;
  mutable std::size_t last_line_ = 0, last_column_ = 0;
  mutable std::ptrdiff_t last_characters_ = 0;
};

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// The last line with content before `line`, both from 0; -1: none.
int content_before(const std::vector<std::string>& lines, int line) {
  for (--line; line >= 0; --line) {
    const std::string_view text = without_blanks(lines[static_cast<std::size_t>(line)]);
    if (!text.empty() && text[0] != '#') break;
  }
  return line;
}

struct Explanation {
  std::string what = {}, hint = {};
};

// Explains why a line alone is not YAML. Empty if it may be: a string of several lines is valid, and the parser then
// reports an error in a later line.
Explanation what_is_wrong_with(std::string_view line) {
  const std::string_view text = without_blanks(line);
  const std::size_t colon = text.find(':'), equals = text.find('='), brace = text.find_first_of("{[");
  const auto key_before = [&](std::size_t at) { return shown(without_blanks(text.substr(0, at))); };
  const auto value_after = [&](std::size_t at) { return shown(without_blanks(text.substr(at + 1))) + "'"; };
  if (text.starts_with("//")) return {"this is not 'key: value'", "a comment begins with '#'"};
  if (text.size() > 1 && text[0] == '-' && text[1] != ' ' && text[1] != '-')
    return {"a '-' without a blank after it", "write '- " + value_after(0)};
  if (colon != text.npos && colon + 1 < text.size() && text[colon + 1] != ' ' && colon < brace)
    return {"a ':' without a blank after it", "write '" + key_before(colon) + ": " + value_after(colon)};
  if (equals != text.npos && equals < std::min(colon, brace))
    return {"this is not 'key: value'", "write '" + key_before(equals) + ": " + value_after(equals)};
  if (brace != text.npos && brace > 0 && text.find(": ") > brace && text[0] != '-')
    return {"a '{' or '[' without ': ' before it", "write '" + key_before(brace) + ": " + text[brace] + "...'"};
  if (colon == text.npos && text[0] != '-')
    return {"this is neither 'key: value' nor '- item'", "a key ends in ':', an item of a list begins with '- '"};
  return {};
}

// A ':' that the parser did not expect: the cause is in its line, or in the line before. Moves the place there.
Explanation explain_colon(const std::vector<std::string>& lines, Place& place) {
  const Explanation usual{"a ':' that belongs to no key",
                          "check the indentation, and put quotes around a string that contains ': '"};
  const int line = place.line - 1, before = content_before(lines, line);
  if (line < 0 || before < 0) return usual;
  const std::string& text = lines[static_cast<std::size_t>(line)];
  const std::string& text_before = lines[static_cast<std::size_t>(before)];
  const bool deeper = indentation(text) > indentation(text_before);
  const bool is_first_colon = text.find(':') + 1 == static_cast<std::size_t>(place.column);
  Place start = place;  // of the line before
  start.line = before + 1;
  start.column = static_cast<int>(indentation(text_before)) + 1;
  if (Explanation found = what_is_wrong_with(text_before); !found.what.empty()) {
    place = start;
    return found;
  }
  if (deeper && text_before.find("- ") == indentation(text_before) && text_before.find(':') == text_before.npos) {
    place = start;
    return {"the next line is indented further, but this one does not end with ':'", "add ':' at its end"};
  }
  if (deeper && is_first_colon && text_before.find(": ") != text_before.npos) {
    place.column = static_cast<int>(indentation(text)) + 1;
    return {"this line is indented further than the line before, which has a value already", "indent both equally"};
  }
  if (const std::size_t brace = text.find(" {"); brace != text.npos && text.find(':') > brace) {
    place.column = static_cast<int>(brace) + 2;
    return {"a '{' without a ':' before it", "write ': {' instead of ' {'"};
  }
  const Explanation found = what_is_wrong_with(text);
  return found.what.empty() ? usual : found;
}

// What the parser expected when it found a bracket still open.
Explanation explain_bracket(const ConfigNode& bracket, const std::string& line) {
  const bool is_list = bracket.kind == ConfigNode::Kind::sequence;
  const char open = is_list ? '[' : '{', close = is_list ? ']' : '}';
  const auto begin = line.begin() + std::clamp<std::ptrdiff_t>(bracket.place.column - 1, 0, std::ssize(line));
  const std::ptrdiff_t closed = std::count(begin, line.end(), close);
  if (closed > 0 && closed >= std::count(begin, line.end(), open))
    return {"a comma is missing between two entries", "such as '{filters: 8, kernel: 3}'"};
  return {join("this '", open, "' is never closed")};
}

Explanation explain_message(const std::string& message) {
  using namespace YAML;
  if (message == ErrorMsg::BLOCK_ENTRY) return {"a '-' where no list is", "check the indentation"};
  if (message == ErrorMsg::END_OF_MAP || message == ErrorMsg::END_OF_SEQ)
    return {"this line fits neither the lines above nor a level below them", "check the indentation"};
  if (message == ErrorMsg::EOF_IN_SCALAR || message == ErrorMsg::DOC_IN_SCALAR)
    return {"a quote above is never closed"};
  if (message == ErrorMsg::UNKNOWN_TOKEN) return {"a string cannot start like this", "put quotes around it"};
  return {message};
}

// The parser's complaint in words that help.
void explain(const YAML::Exception& error, const TreeBuilder& tree, const std::vector<std::string>& lines,
             Diagnostics& diagnostics) {
  using namespace YAML;
  const std::string& message = error.msg;
  Place place = tree.place(error.mark);
  if (message.starts_with(ErrorMsg::UNKNOWN_ANCHOR)) return diagnostics.add(place, no_aliases, instead_of_alias);
  const auto line_at = [&lines](const Place& at) {
    return at.line > 0 ? lines[static_cast<std::size_t>(at.line - 1)] : "";
  };
  const std::string text = line_at(place);
  const ConfigNode* const bracket = tree.open_bracket();
  const bool unclosed =
      message == ErrorMsg::END_OF_SEQ_FLOW || message == ErrorMsg::END_OF_MAP_FLOW || message == ErrorMsg::BLOCK_ENTRY;
  Explanation found;
  if (unclosed && bracket != nullptr) {
    place = bracket->place;  // the parser blames the line where it noticed
    found = explain_bracket(*bracket, line_at(place));
  } else {
    found = message == ErrorMsg::MAP_VALUE ? explain_colon(lines, place) : explain_message(message);
  }
  if (text.find('\t') < text.find_first_not_of(" \t"))
    found.hint = "a tab in the indentation: YAML is indented with blanks";
  if (text.find("${") != std::string::npos && text.find('"') == std::string::npos)
    found.hint = "put quotes around ${...} inside { } and [ ]";
  diagnostics.add(place, "not valid YAML: " + found.what, found.hint);
}

}  // namespace

std::shared_ptr<const SourceText> make_source(const std::string& name, const std::string& text) {
  auto source = std::make_shared<SourceText>();
  source->name = name;
  std::istringstream plain(with_plain_ends(text));
  for (std::string line; std::getline(plain, line);) source->lines.push_back(line);
  if (source->lines.empty()) source->lines.emplace_back();
  return source;
}

bool is_line_of_text(const std::string& bytes) {
  return bytes.find_first_of("\n\t") == std::string::npos && find_binary(bytes) == bytes.size();
}

ConfigNode parse_yaml(const std::string& text, const std::shared_ptr<const SourceText>& source,
                      Diagnostics& diagnostics) {
  const std::string plain = with_plain_ends(text);
  TreeBuilder tree(plain, source, diagnostics);
  if (const std::size_t binary = find_binary(plain); binary < plain.size()) {
    const std::string_view before = std::string_view(plain).substr(0, binary);
    YAML::Mark mark;
    mark.line = static_cast<int>(std::count(before.begin(), before.end(), '\n'));
    mark.column = static_cast<int>(binary - (before.rfind('\n') + 1));  // npos + 1 is 0
    diagnostics.add(tree.place(mark), fmt::format("not a UTF-8 text: byte 0x{:02x}", plain[binary] & 0xff),
                    "a config is a text file");
    return {};
  }
  try {
    std::istringstream in(plain);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(tree)) {
    }
    return tree.take();
  } catch (const YAML::Exception& error) {
    explain(error, tree, source->lines, diagnostics);
  } catch (const Stop&) {
  }
  return {};
}

}  // namespace twiddle
