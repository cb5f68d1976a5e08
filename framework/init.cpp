#include "framework/init.h"

#include <cctype>
#include <cmath>
#include <vector>

#include "framework/config/params.h"
#include "framework/parameter.h"
#include "framework/random.h"
#include "framework/tensor_ops.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// As a config says it.
ConfigNode to_node(const Initializer& initializer, const Place& place) {
  using Kind = Initializer::Kind;
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar;
  node.place = place;
  node.text = initializer.kind == Kind::he       ? "he"
              : initializer.kind == Kind::xavier ? "xavier"
                                                 : format_number(initializer.value);
  if (initializer.kind != Kind::gaussian) return node;
  ConfigNode mapping;
  mapping.kind = ConfigNode::Kind::mapping;
  mapping.place = place;
  mapping.entries.push_back({"gaussian", place, std::move(node)});
  return mapping;
}

}  // namespace

Initializer read_initializer(Params& params, const char* key, Initializer fallback) {
  using Kind = Initializer::Kind;
  const ConfigNode* node = params.node(key);
  if (node == nullptr) params.use(key, to_node(fallback, params.place()));
  if (node == nullptr) return fallback;
  const bool is_name = node->kind == ConfigNode::Kind::scalar &&
                       (node->text.empty() || std::isalpha(static_cast<unsigned char>(node->text[0])));
  if (node->kind == ConfigNode::Kind::scalar && !is_name) return {Kind::constant, params.number(key, 0.0, -1e6, 1e6)};

  auto [name, options] = params.named(key, "");
  if (name == "xavier" || name == "he") {
    options.finish();
    return {name == "he" ? Kind::he : Kind::xavier, 0};
  }
  if ((name == "gaussian" || name == "constant") && node->kind == ConfigNode::Kind::mapping) {
    return {name == "gaussian" ? Kind::gaussian : Kind::constant, params.child(key).number(name, 0.0, -1e6, 1e6)};
  }
  params.error(key,
               "'" + std::string(key) + "' must be xavier, he, {gaussian: DEVIATION}, {constant: VALUE} or a number");
  return fallback;
}

void fill_initial(std::span<float> values, const Initializer& initializer, std::int64_t fan_in, std::int64_t fan_out,
                  RandomSequence random) {
  const auto count = static_cast<std::int64_t>(values.size());
  const double limit = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  const double deviation =
      initializer.kind == Initializer::Kind::he ? std::sqrt(2.0 / static_cast<double>(fan_in)) : initializer.value;
#pragma omp parallel for schedule(static) if (count > 16384)
  for (std::int64_t i = 0; i < count; ++i) {
    float& value = values[static_cast<std::size_t>(i)];
    switch (initializer.kind) {
      case Initializer::Kind::constant:
        value = static_cast<float>(initializer.value);
        break;
      case Initializer::Kind::xavier:
        value = static_cast<float>(limit * (2 * random.uniform_double(i) - 1));
        break;
      case Initializer::Kind::gaussian:
      case Initializer::Kind::he:
        value = static_cast<float>(deviation) * random.normal(i);
        break;
    }
  }
}

Tensor Parameter::working(Stream& stream, DType type) {
  const Tensor& value = variable.value();
  if (type == DType::f32) return value;
  if (!copy.defined() || copy.type() != type) copy = Tensor(stream, shape, type), copied = {};
  // A copy made outside of a graph is not valid when the graph is replayed, and vice versa.
  if (copied != value.version() || copied_in != stream.capture_changes()) cast_into(stream, value, copy);
  copied = value.version(), copied_in = stream.capture_changes();
  return copy;
}

void initialize(Stream& stream, Parameter& parameter, std::uint64_t seed) {
  std::uint64_t branch =
      0xcbf29ce484222325u;  // FNV-1a of the name: a parameter's numbers do not depend on its neighbours
  for (const char letter : parameter.name) branch = (branch ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  std::vector<float> values(static_cast<std::size_t>(count_of(parameter.shape)));
  fill_initial(values, parameter.initializer, parameter.fan_in, parameter.fan_out,
               RandomSequence{seed, 0}.split(branch));
  parameter.variable.value() = Tensor::from(stream, parameter.shape, values);
}

}  // namespace twiddle
