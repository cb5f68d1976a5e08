#pragma once
#include <string>
#include <vector>

#include "framework/place.h"

namespace twiddle {

class Diagnostics;
class Params;
class Sequential;

// What a config writes for many parameters at once, such as `conv*` or `stage1.*.bias`: * stands for any text, dots
// too, and ? for one character. It means a parameter where it matches its name, "stage1.conv1.weight", or the name of a
// layer that it belongs to: "stage1.conv1", or "stage1" around that.
struct ParameterPattern {
  std::string text;
  Place place;
  double factor = 1;  // where the config maps patterns to factors
  bool matches(const std::string& parameter) const;
};
bool any_matches(const std::vector<ParameterPattern>& patterns, const std::string& parameter);

// `key: PATTERN`, or a list of them; empty where the key is absent.
std::vector<ParameterPattern> read_patterns(Params& params, const char* key);
// `key: {PATTERN: factor, ...}`, in the order written.
std::vector<ParameterPattern> read_pattern_factors(Params& params, const char* key, double most);

// Multiplies the learning rates of the parameters that patterns match by their factors: of several that match one, the
// last counts.
void scale_learning_rates(const Sequential& net, const std::vector<ParameterPattern>& factors);

// Puts each pattern that matches no parameter into the diagnostics; `key` names what it was read from.
void expect_matches(const char* key, const std::vector<ParameterPattern>& patterns, const Sequential& net,
                    Diagnostics& diagnostics);

}  // namespace twiddle
