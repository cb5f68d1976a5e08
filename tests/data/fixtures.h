#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/augmentation/augment.h"
#include "data/files.h"
#include "data/formats/dataset.h"
#include "framework/config/params.h"
#include "tests/support/temp_path.h"

namespace twiddle {

using Bytes = std::vector<std::uint8_t>;

// Configuration without a file: "5", sequence({"a", "b"}), mapping({{"key", "value"}}).
struct Value : ConfigNode {
  Value(const char* scalar) { kind = Kind::scalar, text = scalar; }
  Value(const std::string& scalar) : Value(scalar.c_str()) {}
};
inline Value sequence(const std::vector<Value>& items) {
  Value node("");
  node.kind = ConfigNode::Kind::sequence;
  node.items.assign(items.begin(), items.end());
  return node;
}
inline Value mapping(const std::vector<std::pair<std::string, Value>>& entries) {
  Value node("");
  node.kind = ConfigNode::Kind::mapping;
  for (const auto& [key, value] : entries) node.entries.push_back({key, {}, value});
  return node;
}

inline std::unique_ptr<Dataset> open_dataset(const std::string& format, const Value& options,
                                             const DatasetSite& site = {"", {3, 8, 8}, 0}) {
  Diagnostics diagnostics;
  Params params(options, format, diagnostics);
  const std::unique_ptr<DatasetSource> source = builtin_datasets().make(format, site, params);
  params.finish();
  diagnostics.throw_if_any();
  return source->open();
}

inline Augment read_augment(const Value& data, std::vector<std::int64_t> shape) {
  Diagnostics diagnostics;
  Params params(data, "data", diagnostics);
  Augment augment(params, "augment", std::move(shape));
  params.finish();
  diagnostics.throw_if_any();
  return augment;
}

// Returns a new folder for the running test.
inline std::filesystem::path fresh_folder() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder =
      std::filesystem::path(temp_path("data")) / test->test_suite_name() / test->name();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

inline std::string write_file(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::remove(path);  // some file systems flush a file that is written over: slow
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path.string();
}
inline std::string write_text(const std::filesystem::path& path, const std::string& text) {
  return write_file(path, Bytes(text.begin(), text.end()));
}

// Returns the message of the Error of this kind that the action throws; fails the test if it throws none.
inline std::string message_of(ErrorKind kind, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(int(error.kind()), int(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// A PNG file of one color per channel.
inline Bytes png_of(int channels, int height, int width, std::uint8_t value) {
  return encode_png({channels, height, width, Bytes(static_cast<std::size_t>(channels * height * width), value)});
}

// Folder of real data next to the project, or "" if the machine has none.
inline std::string shared_data(const std::string& name) {
  const char* chosen = std::getenv("TWIDDLE_DATA");
  const std::filesystem::path path = std::filesystem::path(chosen ? chosen : "../shared/data") / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace twiddle
