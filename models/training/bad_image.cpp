#include "models/training/bad_image.h"

#include <algorithm>
#include <cmath>

#include "data/formats/dataset.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

std::string bad_value_in(Stream& stream, const Tensor& images, const Batch& batch, const Dataset& dataset,
                         const char* what) {
  if (!images.defined() || images.type() != DType::f32 || images.shape().size() != 4) return "";
  const std::vector<float> values = images.to_vector(stream);
  const auto bad = std::find_if_not(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (bad == values.end()) return "";
  const std::int64_t index = bad - values.begin(), width = images.dim(3), height = images.dim(2);
  const std::int64_t row = index / width / height / images.dim(1);
  const bool is_known = static_cast<std::size_t>(row) < batch.indices.size();
  const std::string where =
      is_known ? dataset.where(batch.indices[static_cast<std::size_t>(row)]) : join("image ", row + 1, " of the batch");
  return join(where, ": the ", what, " at channel ", index / width / height % images.dim(1), ", row ",
              index / width % height, ", column ", index % width, " is ", format_number(*bad));
}

}  // namespace

std::string first_bad_image(Stream& stream, const Batch& batch, const Dataset& dataset) {
  const std::string bad = bad_value_in(stream, batch.images, batch, dataset, "value");
  return !bad.empty() ? bad : bad_value_in(stream, batch.targets, batch, dataset, "target's value");
}

}  // namespace twiddle
