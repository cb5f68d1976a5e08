#include "models/config/yaml.h"
#include "framework/error.h"

#include <gtest/gtest.h>

#include "models/config/config.h"

namespace twiddle {

namespace {

using Kind = ConfigNode::Kind;

ConfigNode parse(const std::string& text) {
  Diagnostics diagnostics;
  ConfigNode node = parse_yaml(text, make_source("a.yaml", text), diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  return node;
}

// Returns the error message for a refused string.
std::string yaml_complaint(const std::string& text) {
  Diagnostics diagnostics;
  parse_yaml(text, make_source("a.yaml", text), diagnostics);
  return diagnostics.text();
}

bool same(const ConfigNode& a, const ConfigNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() || a.entries.size() != b.entries.size())
    return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.entries.size(); ++i)
    if (a.entries[i].key != b.entries[i].key || !same(a.entries[i].value, b.entries[i].value)) return false;
  return true;
}

}  // namespace

TEST(Yaml, TreeHasPositions) {
  const ConfigNode node =
      parse("# a comment\nmodel:\n  layers:\n    - conv2d: {filters: 32, kernel: [3, 5]}\n    - relu\n");
  const ConfigNode& layers = *node.find("model")->find("layers");
  ASSERT_EQ(layers.items.size(), 2u);
  const ConfigNode& options = *layers.items[0].find("conv2d");
  EXPECT_EQ(to_string(options.entries[1].place), "a.yaml:4:29");
  EXPECT_EQ(to_string(options.find("filters")->place), "a.yaml:4:25");
  EXPECT_EQ(options.find("kernel")->items[1].text, "5");
  EXPECT_EQ(layers.items[1].text, "relu");
  EXPECT_EQ(layers.items[1].place.line, 5);
  EXPECT_EQ(layers.items[1].place.length, 4);
}

TEST(Yaml, ScalarsStayStringsWithQuoteFlag) {
  const ConfigNode node = parse("a: 010\nb: yes\nc: \"5\"\nd: '5'\ne: ~\nf:\ng: \"\"\n");
  EXPECT_EQ(node.find("a")->text, "010");
  EXPECT_EQ(node.find("b")->text, "yes");
  EXPECT_TRUE(node.find("c")->quoted);
  EXPECT_TRUE(node.find("d")->quoted);
  EXPECT_FALSE(node.find("a")->quoted);
  EXPECT_EQ(node.find("e")->kind, Kind::null);
  EXPECT_EQ(node.find("f")->kind, Kind::null);
  EXPECT_EQ(to_string(node.find("f")->place), "a.yaml:6:1");
  EXPECT_EQ(node.find("g")->kind, Kind::scalar);
}

TEST(Yaml, EmptyItemsHavePositions) {
  const ConfigNode node = parse("a:\n  - x\n  -\n\n  # - y\n  - z\n  -  # w - v\nb:\n- - 1\n  -\n-");
  const auto place_of = [&](const char* key, std::size_t i) { return to_string(node.find(key)->items.at(i).place); };
  EXPECT_EQ(place_of("a", 1), "a.yaml:3:3");
  EXPECT_EQ(place_of("a", 3), "a.yaml:7:3");
  EXPECT_EQ(to_string(node.find("b")->items[0].items[1].place), "a.yaml:10:3");
  EXPECT_EQ(place_of("b", 1), "a.yaml:11:1");
  EXPECT_EQ(to_string(parse("a: [1,\n  , 2]\n").find("a")->items[1].place), "a.yaml:2:3");
}

TEST(Yaml, ColumnsCountCharacters) {
  const ConfigNode node = parse("\xEF\xBB\xBFk\xc3\xa4se: {gr\xc3\xbc\xc3\x9f: 1}\r\nb: 2\r\n");
  EXPECT_EQ(to_string(node.entries[0].value.entries[0].value.place), "a.yaml:1:14");
  EXPECT_EQ(node.find("b")->text, "2");
}

TEST(Yaml, ReportsAllDuplicateKeys) {
  EXPECT_EQ(yaml_complaint("lr: 1\nb: {x: 1, x: 2}\nlr: 2\n"),
            "a.yaml:2:11: error: duplicate key 'x' (first at line 2)\n"
            "    2 | b: {x: 1, x: 2}\n"
            "      |           ^\n"
            "a.yaml:3:1: error: duplicate key 'lr' (first at line 1)\n"
            "    3 | lr: 2\n"
            "      | ^~\n");
}

TEST(Yaml, ReportsPositionOfUnclosedBracket) {
  EXPECT_EQ(yaml_complaint("model:\n  input: [3, 32, 32\n  layers: 3\ntrain: 5\n"),
            "a.yaml:2:10: error: not valid YAML: this '[' is never closed\n"
            "    2 |   input: [3, 32, 32\n"
            "      |          ^\n");
  EXPECT_NE(yaml_complaint("a: {b: 1\n").find("a.yaml:1:4: error: not valid YAML: this '{' is never closed"),
            std::string::npos);
}

TEST(Yaml, ReportsTabs) {
  EXPECT_NE(yaml_complaint("train:\n\tepochs: 3\n").find("a tab in the indentation"), std::string::npos)
      << yaml_complaint("train:\n\tepochs: 3\n");
}

TEST(Yaml, SyntaxErrorsHavePositions) {
  for (const char* wrong : {"a: b: c\n", "a: 1\n  b: 2\n", "a: \"x\n", "a: [1, 2}\n", "a: @x\n", "a: 1\n- b\n"})
    EXPECT_EQ(yaml_complaint(wrong).rfind("a.yaml:", 0), 0u) << wrong << yaml_complaint(wrong);
  EXPECT_EQ(yaml_complaint("a: 1\nb: \"x\n").substr(0, 58),
            "a.yaml:2:4: error: not valid YAML: this quote is never clo");
}

TEST(Yaml, RefusesAnchorsTagsAndSecondDocuments) {
  EXPECT_NE(yaml_complaint("a: &x 1\n").find("a.yaml:1:4: error: anchors"), std::string::npos)
      << yaml_complaint("a: &x 1\n");
  EXPECT_NE(yaml_complaint("a: *x\n").find("a.yaml:1:4: error: aliases"), std::string::npos)
      << yaml_complaint("a: *x\n");
  EXPECT_NE(yaml_complaint("a: &x [1]\nb: [*x, *x]\n").find("anchors"), std::string::npos);
  EXPECT_NE(yaml_complaint("a: !!int 5\n").find("tags ('!int')"), std::string::npos) << yaml_complaint("a: !!int 5\n");
  EXPECT_NE(yaml_complaint("<<: {a: 1}\n").find("merge keys"), std::string::npos);
  EXPECT_NE(yaml_complaint("a: 1\n---\nb: 2\n").find("a second document"), std::string::npos);
  EXPECT_NE(yaml_complaint("? [a, b]\n: 1\n").find("a key must be a string"), std::string::npos);
}

TEST(Yaml, RefusesBinary) {
  EXPECT_EQ(yaml_complaint(std::string("ab\nc\0d", 6)),
            "a.yaml:2:2: error: not a UTF-8 text: byte 0x00\n"
            "    2 | c d\n"
            "      |  ^ a config is a text file\n");
  for (const char* wrong :
       {"a: \xff\n", "a: \xc3", "a: \xe2\x28\xa1\n", "\x7f\x45LF", "a: \xed\n", "\xf8\x88\x80\x80\x80"})
    EXPECT_NE(yaml_complaint(wrong).find("not a UTF-8 text"), std::string::npos) << yaml_complaint(wrong);
}

TEST(Yaml, RefusesDeepNesting) {
  std::string dashes, maps;
  for (int i = 0; i < 5000; ++i) dashes += "- ";
  for (int i = 0; i < 2000; ++i) maps += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  for (const std::string& text : {std::string(100000, '['), std::string(100000, '{'), dashes, maps,
                                  "a: " + std::string(1000, '[') + std::string(1000, ']')})
    EXPECT_NE(yaml_complaint(text).find("nested more than 64 levels deep"), std::string::npos) << yaml_complaint(text);
}

TEST(Yaml, RefusesTooManyValues) {
  std::string list = "a: [";
  for (int i = 0; i < 100001; ++i) list += "1,";
  EXPECT_NE(yaml_complaint(list + "]").find("more than 100000 values"), std::string::npos);
}

TEST(Yaml, SurvivesEveryTruncation) {
  const std::string text =
      "version: 1\nmodel: {input: [1, \"8\", 8], layers: [relu, {conv2d: {filters: 'x'}}]}\nlist:\n  - a\n  - b: c\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    Diagnostics diagnostics;
    const std::string part = text.substr(0, length);
    const ConfigNode node = parse_yaml(part, make_source("a.yaml", part), diagnostics);
    EXPECT_TRUE(node.kind != Kind::null || length == 0 || !diagnostics.empty()) << part;
  }
}

TEST(Yaml, EscapesControlCharacters) {
  ConfigNode node = parse("a: 1\n");
  node.entries[0].value.text = "\u009b2J\u2028\x1b";
  EXPECT_EQ(to_yaml(node), "a: \"\\x9b2J\\u2028\\x1b\"\n");
  EXPECT_EQ(parse(to_yaml(node)).entries[0].value.text, node.entries[0].value.text);
}

TEST(Yaml, RefusesInvalidUtf8) {
  ConfigNode node = parse("a: 1\n");
  node.entries[0].value.text = "runs/latin\xe9";
  try {
    to_yaml(node);
    ADD_FAILURE() << "was written";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'runs/latin\uFFFD' is not UTF-8"), std::string::npos) << error.what();
  }
}

TEST(Yaml, WrittenTreesRoundTrip) {
  const ConfigNode tree = parse(
      "a: 1\n"
      "b: [1, [2, 3], {c: d}, [], {}, ~]\n"
      "text: \"line\\nbreak \\\"quoted\\\" \\\\ \\x07 \xc3\xa4\"\n"
      "looks: [\"5\", \"null\", \"~\", \"true\", \"\", \" x \", \"- a\", \"a: b\", \"#c\", \"a #b\", '[', \"...\", "
      "\"---\"]\n"
      "plain: [a b, -1, +2, 5e-4, ../x/y.z, a-b]\n"
      "\"odd: key\": {\"\": 1, \"5\": 2, \"~\": 3, \"<<\": 4}\n"
      "nothing:\n"
      "layers:\n"
      "  - relu\n"
      "  - conv2d: {filters: 32, kernel: [3, 5], init: {gaussian: 0.01}}\n"
      "  - repeat:\n"
      "      times: 2\n"
      "      layers: [relu, dropout: {rate: 0.5}]\n"
      "  - - nested\n"
      "    - [list]\n");
  const std::string written = to_yaml(tree);
  const ConfigNode again = parse(written);
  EXPECT_TRUE(same(tree, again)) << written;
  EXPECT_EQ(to_yaml(again), written);
  EXPECT_TRUE(again.find("looks")->items[0].quoted);
}

TEST(Yaml, WritesBlockStyle) {
  EXPECT_EQ(to_yaml(parse("model: {input: [1, 8, 8], layers: [{conv2d: {filters: 3}}, relu]}")),
            "model:\n  input: [1, 8, 8]\n  layers:\n    - conv2d: {filters: 3}\n    - relu\n");
}

}  // namespace twiddle
