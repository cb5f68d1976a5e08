#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "layers/sequential.h"

namespace twiddle {

// How the outputs of paths become one: the sum or the product, element by element, of equal shapes; or all channels one
// path after another, where all other dimensions are equal.
enum class Join : std::uint8_t { add, concat, multiply };
const char* to_string(Join join);

// Paths that all take the same input, joined. A path without layers is the input itself.
class Branches : public Layer {
 public:
  struct Path {
    std::string name;  // for errors: "shortcut"
    Sequential layers;
  };

  // Throws an Error that shows all shapes where the outputs of the paths do not fit together.
  Branches(std::string name, Join join, std::vector<Path> paths);
  Variable forward(Context& ctx, const Variable& x) override;
  bool runs_without_rows() const override { return true; }  // for the layers of its paths
  bool takes_16_bits() const override { return true; }
  bool keeps_output() const override { return relu_; }
  std::size_t kept_bytes() const override;
  bool take_over_relu() override;
  std::string describe() const override;
  std::vector<const Sequential*> paths() const override;

 private:
  Variable forward_in_adder(Context& ctx, const Variable& x) const;

  Join join_;
  std::vector<Path> paths_;
  std::size_t adding_path_ = 0;
  Layer* adder_ = nullptr;  // the last layer of that path, where it adds the other path's output itself
  bool relu_ = false;
};

}  // namespace twiddle
