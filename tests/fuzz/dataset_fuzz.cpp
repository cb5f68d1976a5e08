#include "data/formats/dataset.h"
#include "framework/config/params.h"

#include "framework/printable.h"
#include "tests/fuzz/input_file.h"

namespace {

using namespace twiddle;

ConfigNode::Entry option(const std::string& key, const std::string& value) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.text = value;
  return {key, {}, node};
}

std::unique_ptr<Dataset> open(const std::string& format, std::vector<ConfigNode::Entry> options) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::mapping;
  node.entries = std::move(options);
  Diagnostics diagnostics;
  Params params(node, format, diagnostics);
  const std::unique_ptr<DatasetSource> source = builtin_datasets().make(format, {"", {1, 8, 8}, 0}, params);
  diagnostics.throw_if_any();
  return source->open();
}

// The first byte selects the format.
std::unique_ptr<Dataset> open(Input input) {
  static InputFile first, second;
  const int format = input.empty() ? 0 : input[0] % 3;
  Input rest = input.subspan(input.empty() ? 0 : 1);
  if (format == 1) return open("cifar10", {option("path", first.holding(rest))});
  if (format == 2) return open("image_list", {option("file", first.holding(rest))});
  const Input images = take_part(rest);
  return open("idx", {option("images", first.holding(images)), option("labels", second.holding(rest))});
}

void read(const Dataset& data) {
  Image image;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(data.size(), 4); ++i) try {
      const std::int64_t label = data.get(i, image).label();
      require(label >= 0 && label < static_cast<std::int64_t>(data.classes().size()), "a label that has no class");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
    }
  for (const std::string& name : data.classes()) require(name == printable(name), "a class that cannot be shown");
}

}  // namespace

// Any bytes as a dataset: it is opened or refused; a dataset that was opened can be read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::unique_ptr<Dataset> opened;
  try {
    opened = open(Input(data, size));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data || error.what() != printable_lines(error.what())) throw;
  }
  if (opened) read(*opened);
  return 0;
}
