#include "framework/config/params.h"
#include "framework/error.h"

#include <gtest/gtest.h>

namespace twiddle {

namespace {

// A mapping as a file would give it: entries on separate lines, values after "key: ".
class ParamsTest : public testing::Test {
 protected:
  void add(const std::string& key, ConfigNode value) {
    source_->lines.push_back(key + ": " + value.text);
    const auto line = static_cast<int>(source_->lines.size());
    value.place = {source_, line, static_cast<int>(key.size()) + 3, static_cast<int>(value.text.size())};
    node_.entries.push_back({key, {source_, line, 1, static_cast<int>(key.size())}, std::move(value)});
  }
  static ConfigNode scalar(const std::string& text, bool quoted = false) {
    ConfigNode node;
    node.kind = ConfigNode::Kind::scalar;
    node.text = text;
    node.quoted = quoted;
    return node;
  }
  static ConfigNode list(const std::vector<std::string>& texts) {
    ConfigNode node;
    node.kind = ConfigNode::Kind::sequence;
    for (const std::string& text : texts) node.items.push_back(scalar(text));
    return node;
  }
  Params params() {
    node_.kind = ConfigNode::Kind::mapping;
    node_.place = {source_, 1, 1, 1};
    return Params(node_, "conv2d", diagnostics_);
  }
  // The text of the only error.
  std::string error() {
    EXPECT_EQ(diagnostics_.size(), 1u) << diagnostics_.text();
    return diagnostics_.text();
  }

  std::shared_ptr<SourceText> source_ = std::make_shared<SourceText>(SourceText{"net.yaml", {}});
  ConfigNode node_;
  Diagnostics diagnostics_;
};

}  // namespace

TEST_F(ParamsTest, ReadsEveryKind) {
  add("filters", scalar("64"));
  add("rate", scalar("5e-4"));
  add("bias", scalar("false"));
  add("engine", scalar("direct"));
  add("limit", scalar("2GiB"));
  add("kernel", list({"3", "5"}));
  add("stride", scalar("2"));
  add("mean", list({"0.5", "1"}));
  add("input", list({"3", "32", "32"}));
  add("path", scalar("a.bin"));
  Params read = params();
  EXPECT_EQ(read.integer("filters", std::nullopt, 1, 100), 64);
  EXPECT_EQ(read.number("rate", std::nullopt, 0, 1), 5e-4);
  EXPECT_FALSE(read.flag("bias", true));
  EXPECT_EQ(read.choice("engine", "rule", {"rule", "direct"}), "direct");
  EXPECT_EQ(read.bytes("limit", 0), std::uint64_t(2) << 30);
  EXPECT_EQ(read.pair("kernel", std::nullopt, 1, 9), (std::array<int, 2>{3, 5}));
  EXPECT_EQ(read.pair("stride", std::nullopt, 1, 9), (std::array<int, 2>{2, 2}));
  EXPECT_EQ(read.numbers("mean", {}), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(read.integers("input", 1, 99), (std::vector<std::int64_t>{3, 32, 32}));
  EXPECT_EQ(read.texts("path"), (std::vector<std::string>{"a.bin"}));
  EXPECT_EQ(read.integer("absent", 7, 0, 9), 7);
  read.finish();
  EXPECT_TRUE(diagnostics_.empty()) << diagnostics_.text();
}

TEST_F(ParamsTest, UnknownKeySuggests) {
  add("filters", scalar("8"));
  add("kernal", scalar("3"));
  Params read = params();
  read.integer("filters", std::nullopt, 1, 100);
  read.pair("kernel", std::array<int, 2>{1, 1}, 1, 9);
  read.finish();
  EXPECT_EQ(error(),
            "net.yaml:2:1: error: unknown key 'kernal' in 'conv2d'\n"
            "    2 | kernal: 3\n"
            "      | ^~~~~~ did you mean 'kernel'?\n");
}

TEST_F(ParamsTest, WrongTypeReportsRangeAndValue) {
  add("stride", scalar("two"));
  EXPECT_EQ(params().integer("stride", 1, 1, 64), 1);
  EXPECT_EQ(error(),
            "net.yaml:1:9: error: 'stride' must be a whole number from 1 to 64, found \"two\"\n"
            "    1 | stride: two\n"
            "      |         ^~~\n");
}

TEST_F(ParamsTest, WholeNumbersAreStrict) {
  for (const char* wrong : {"010", "-010", "0x10", "1e3", "3.0", "1_000", "", "99999999999999999999", "3 "}) {
    ParamsTest::diagnostics_ = {};
    node_.entries.clear();
    add("stride", scalar(wrong));
    EXPECT_EQ(params().integer("stride", 1, 0, 1 << 30), 1) << wrong;
    EXPECT_EQ(diagnostics_.size(), 1u) << wrong;
  }
}

TEST_F(ParamsTest, QuotedNumberIsString) {
  add("stride", scalar("2", true));
  params().integer("stride", 1, 1, 64);
  EXPECT_NE(error().find("remove the quotes"), std::string::npos) << error();
}

TEST_F(ParamsTest, AcceptsUsualNumberFormats) {
  for (const char* right : {"1e-3", "1E-3", ".001", "1e-03", "0.001", "+.001"}) {
    node_.entries.clear();
    add("rate", scalar(right));
    EXPECT_EQ(params().number("rate", 0.25, 0, 1), 0.001) << right;
  }
  EXPECT_TRUE(diagnostics_.empty());
}

TEST_F(ParamsTest, SuggestsCorrectSpelling) {
  const auto hint = [this](const char* text, const auto& read) {
    diagnostics_ = {};
    node_.entries.clear();
    add("x", scalar(text));
    read();
    const std::size_t caret = error().find('^');
    return error().substr(error().find_first_not_of("^~ ", caret));
  };
  const auto integer = [this] { params().integer("x", 1, 0, 1 << 30); };
  const auto number = [this] { params().number("x", 0.25, 0, 1); };
  const auto pair = [this] { params().pair("x", {{1, 1}}, 0, 9); };
  const auto numbers = [this] { params().numbers("x", {}); };
  const auto flag = [this] { params().flag("x", false); };
  EXPECT_EQ(hint("1,000", integer), "write 1000\n");
  EXPECT_EQ(hint("1_000", integer), "write 1000\n");
  EXPECT_EQ(hint("1e3", integer), "write 1000\n");
  EXPECT_EQ(hint("3.0", integer), "write 3\n");
  EXPECT_EQ(hint("0,5", number), "write 0.5\n");
  EXPECT_EQ(hint("50%", number), "write 0.5\n");
  EXPECT_EQ(hint("(3, 3)", pair), "write [3, 3]\n");
  EXPECT_EQ(hint("3x3", pair), "write [3, 3]\n");
  EXPECT_EQ(hint("0.5, 0.5", numbers), "write [0.5, 0.5]\n");
  EXPECT_EQ(hint("True", flag), "write true\n");
  EXPECT_EQ(hint("off", flag), "write false\n");
  EXPECT_EQ(hint("2", number), "\n");
}

TEST_F(ParamsTest, UnknownKeySuggestsItsSection) {
  add("momentum", scalar("0.9"));
  Params root = params();
  root.named("optimizer", "sgd").second.number("momentum", 0.0, 0, 1);
  root.finish();
  EXPECT_NE(error().find("write it as 'optimizer: {sgd: {momentum: 0.9}}'\n"), std::string::npos) << error();
}

TEST_F(ParamsTest, NumberRefusesNonFinite) {
  for (const char* wrong : {"nan", "inf", ".inf", "1e999", "0.5x", "010", "-00.5"}) {
    diagnostics_ = {};
    node_.entries.clear();
    add("rate", scalar(wrong));
    EXPECT_EQ(params().number("rate", 0.25, -1e308, 1e308), 0.25) << wrong;
    EXPECT_EQ(diagnostics_.size(), 1u) << wrong;
  }
}

TEST_F(ParamsTest, FlagAcceptsOnlyTrueOrFalse) {
  add("bias", scalar("yes"));
  EXPECT_TRUE(params().flag("bias", true));
  EXPECT_EQ(error().substr(0, error().find('\n')), "net.yaml:1:7: error: 'bias' must be true or false, found \"yes\"");
}

TEST_F(ParamsTest, ChoiceSuggests) {
  add("precision", scalar("tf23"));
  EXPECT_EQ(params().choice("precision", "fp32", {"fp32", "tf32"}), "fp32");
  EXPECT_NE(error().find("'precision' must be one of fp32, tf32, found \"tf23\""), std::string::npos) << error();
  EXPECT_NE(error().find("did you mean 'tf32'?"), std::string::npos);
}

TEST_F(ParamsTest, PairsAreChecked) {
  add("kernel", list({"3", "zero"}));
  EXPECT_EQ(params().pair("kernel", std::nullopt, 1, 9), (std::array<int, 2>{1, 1}));
  EXPECT_NE(error().find("'kernel' must be two whole numbers from 1 to 9, [height, width], found \"zero\""),
            std::string::npos)
      << error();
  diagnostics_ = {};
  add("pad", list({"3", "3", "3"}));
  params().pair("pad", std::nullopt, 0, 9);
  EXPECT_NE(error().find("found a list of 3"), std::string::npos) << error();
}

TEST_F(ParamsTest, MissingKey) {
  add("bias", scalar("true"));
  params().integer("filters", std::nullopt, 1, 100);
  EXPECT_NE(error().find("net.yaml:1:1: error: missing key 'filters' in 'conv2d'"), std::string::npos) << error();
}

TEST_F(ParamsTest, ReadsNameWithOrWithoutOptions) {
  add("schedule", scalar("cosine"));
  ConfigNode options;
  options.kind = ConfigNode::Kind::mapping;
  options.entries.push_back({"momentum", {}, scalar("0.9")});
  ConfigNode choice;
  choice.kind = ConfigNode::Kind::mapping;
  choice.entries.push_back({"sgd", {}, options});
  add("optimizer", choice);
  Params read = params();
  EXPECT_EQ(read.named("schedule", "constant").first, "cosine");
  EXPECT_EQ(read.named("absent", "constant").first, "constant");
  auto [name, inner] = read.named("optimizer", "adam");
  EXPECT_EQ(name, "sgd");
  EXPECT_EQ(inner.number("momentum", 0.0, 0, 1), 0.9);
  EXPECT_TRUE(diagnostics_.empty());
}

TEST_F(ParamsTest, ReportsScalarInsteadOfSectionOnce) {
  add("train", scalar("5"));
  Params child = params().child("train");
  EXPECT_EQ(child.integer("epochs", std::nullopt, 1, 9), 1);
  EXPECT_FALSE(child.has("batch_size"));
  child.finish();
  EXPECT_NE(error().find("'conv2d.train' must be a mapping of keys to values, found \"5\""), std::string::npos)
      << error();
}

TEST(Diagnostics, SortsByPositionAndRemovesDuplicates) {
  const auto source = std::make_shared<SourceText>(SourceText{"a.yaml", {"one: 1", "two: 2"}});
  Diagnostics diagnostics;
  EXPECT_NO_THROW(diagnostics.throw_if_any());
  diagnostics.add({source, 2, 6, 1}, "second", "hint");
  diagnostics.add({source, 1, 1, 3}, "first");
  diagnostics.add({source, 2, 6, 1}, "second");
  try {
    diagnostics.throw_if_any();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_STREQ(error.what(),
                 "a.yaml:1:1: error: first\n"
                 "    1 | one: 1\n"
                 "      | ^~~\n"
                 "a.yaml:2:6: error: second\n"
                 "    2 | two: 2\n"
                 "      |      ^ hint\n"
                 "2 errors; nothing was run.");
  }
}

TEST(Diagnostics, AcceptsPositionsWithoutLines) {
  Diagnostics diagnostics;
  diagnostics.add({}, "somewhere");
  diagnostics.add({std::make_shared<SourceText>(SourceText{"--set a=1", {}}), 0, 0, 1}, "here", "do this");
  EXPECT_EQ(diagnostics.text(), "error: somewhere\n--set a=1: error: here\n  do this\n");
}

TEST(Diagnostics, TruncatesAndEscapesLines) {
  const auto source = std::make_shared<SourceText>(
      SourceText{"a.yaml", {std::string(5000, 'x') + "WRONG" + std::string(5000, 'y'), "\tk\xc3\xa4se: \x1b[31m"}});
  Diagnostics diagnostics;
  diagnostics.add({source, 1, 5001, 5}, "long");
  diagnostics.add({source, 2, 2, 4}, "strange");
  const std::string text = diagnostics.text();
  EXPECT_LT(text.size(), 500u);
  EXPECT_NE(text.find("xxWRONGyy"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("    2 |  k\xc3\xa4se:  [31m\n      |  ^~~~\n"), std::string::npos) << text;
}

// The keys of a mapping as "key=value", in their order.
std::vector<std::string> flat(const ConfigNode& node) {
  std::vector<std::string> all;
  for (const ConfigNode::Entry& entry : node.entries) {
    std::string text = entry.value.text;
    for (const ConfigNode& item : entry.value.items) text += item.text + ";";
    for (const std::string& inner : flat(entry.value)) text += "{" + inner + "}";
    all.push_back(entry.key + "=" + text);
  }
  return all;
}

TEST_F(ParamsTest, UsedHoldsValuesAndDefaults) {
  add("filters", scalar("32"));
  Params read = params();
  read.integer("filters", std::nullopt, 1, 100);
  read.number("rate", 0.5, 0, 1);
  read.flag("bias", true);
  read.choice("rounding", "floor", {"floor", "ceil"});
  read.bytes("limit", 3u << 20);
  read.pair("kernel", {{3, 3}}, 1, 9);
  read.pair("stride", {{1, 2}}, 1, 9);
  read.numbers("mean", {0.25, 1});
  EXPECT_EQ(flat(read.used()), (std::vector<std::string>{"filters=32", "rate=0.5", "bias=true", "rounding=floor",
                                                         "limit=3MiB", "kernel=3", "stride=1;2;", "mean=0.25;1;"}));
}

// The meaning of such a missing key cannot be written as a value.
TEST_F(ParamsTest, UsedOmitsUnsetDefaults) {
  Params read = params();
  read.integer("inputs", 0, 1, 100);
  read.text("engine", "");
  read.choice("split", "", {"train", "test"});
  read.texts("classes");
  read.has("seen");
  EXPECT_TRUE(read.used().entries.empty());
}

TEST_F(ParamsTest, UsedHoldsSectionsAndChoices) {
  add("optimizer", scalar("sgd"));
  Params read = params();
  read.named("optimizer", "adam").second.number("momentum", 0.0, 0, 1);
  read.named("schedule", "constant");
  read.child("limits").integer("most", 7, 0, 9);
  EXPECT_EQ(flat(read.used()),
            (std::vector<std::string>{"optimizer={sgd={momentum=0}}", "schedule=constant", "limits={most=7}"}));
}

}  // namespace twiddle
