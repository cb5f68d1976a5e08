#pragma once
#include <cstdint>
#include <span>

namespace twiddle {

struct RandomSequence;

class Params;

// How a parameter starts.
struct Initializer {
  enum class Kind { constant, gaussian, xavier, he } kind = Kind::constant;
  double value = 0;  // constant: the value; gaussian: the standard deviation
};

// Reads `key: xavier | he | {gaussian: 0.01} | {constant: 0.1}`, or a number, which is a constant.
Initializer read_initializer(Params& params, const char* key, Initializer fallback);

// xavier: uniform in +-sqrt(6 / (fan_in + fan_out)) (Glorot, Bengio 2010); he: normal with deviation sqrt(2 / fan_in)
// (He et al. 2015).
void fill_initial(std::span<float> values, const Initializer& initializer, std::int64_t fan_in, std::int64_t fan_out,
                  RandomSequence random);

}  // namespace twiddle
