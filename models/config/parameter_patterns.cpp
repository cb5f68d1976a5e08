#include "models/config/parameter_patterns.h"

#include <algorithm>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/parameter.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/sequential.h"

namespace twiddle {

namespace {

// From the last star on, more and more of the text is left to it until the rest matches.
bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, after_star = std::string_view::npos, left_to_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p, left_to_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (after_star != std::string_view::npos) {
      p = after_star, t = ++left_to_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<std::string> names_of(const Sequential& net) {
  std::vector<std::string> names;
  for (const Sequential::Item* item : net.all_items()) names.push_back(item->layer->name());
  for (const Parameter* parameter : net.parameters()) names.push_back(parameter->name);
  return names;
}

}  // namespace

bool ParameterPattern::matches(const std::string& parameter) const {
  for (std::size_t end = parameter.size(); end != std::string::npos && end > 0; end = parameter.rfind('.', end - 1))
    if (matches_glob(text, std::string_view(parameter).substr(0, end))) return true;
  return false;
}

bool any_matches(const std::vector<ParameterPattern>& patterns, const std::string& parameter) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const ParameterPattern& pattern) { return pattern.matches(parameter); });
}

std::vector<ParameterPattern> read_patterns(Params& params, const char* key) {
  const ConfigNode* node = params.node(key);
  if (node == nullptr || node->kind == ConfigNode::Kind::null) return {};
  const std::vector<std::string> texts = params.texts(key);
  std::vector<ParameterPattern> patterns;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool in_list = node->kind == ConfigNode::Kind::sequence && i < node->items.size();
    patterns.push_back({texts[i], in_list ? node->items[i].place : node->place});
  }
  return patterns;
}

std::vector<ParameterPattern> read_pattern_factors(Params& params, const char* key, double most) {
  const ConfigNode* node = params.node(key);
  if (node == nullptr || node->kind == ConfigNode::Kind::null) return {};
  Params factors = params.child(key);
  std::vector<ParameterPattern> patterns;
  for (const ConfigNode::Entry& entry : node->entries)
    patterns.push_back({entry.key, entry.place, factors.number(entry.key, std::nullopt, 0, most)});
  factors.finish();
  return patterns;
}

void scale_learning_rates(const Sequential& net, const std::vector<ParameterPattern>& factors) {
  for (Parameter* parameter : net.parameters()) {
    const auto last = std::find_if(factors.rbegin(), factors.rend(),
                                   [&](const ParameterPattern& pattern) { return pattern.matches(parameter->name); });
    if (last != factors.rend()) parameter->learning_rate *= static_cast<float>(last->factor);
  }
}

void expect_matches(const char* key, const std::vector<ParameterPattern>& patterns, const Sequential& net,
                    Diagnostics& diagnostics) {
  const std::vector<Parameter*> parameters = net.parameters();
  for (const ParameterPattern& pattern : patterns) {
    const bool matches_one = std::any_of(parameters.begin(), parameters.end(),
                                         [&](const Parameter* parameter) { return pattern.matches(parameter->name); });
    if (matches_one) continue;
    const auto nearest = nearest_name(pattern.text, names_of(net));
    diagnostics.add(pattern.place, join("'", shown(pattern.text), "' of '", key, "' matches no parameter of the model"),
                    nearest ? "did you mean '" + *nearest + "'?"
                            : join("parameters have names such as '", parameters.empty() ? "" : parameters[0]->name,
                                   "'; 'twiddle summary' lists the layers"));
  }
}

}  // namespace twiddle
