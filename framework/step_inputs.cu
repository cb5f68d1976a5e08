#include "framework/step_inputs.h"

#include "framework/for_each.h"

namespace twiddle {

namespace {

struct CloseUpdate {
  float *guard, *found_bad;
  TWIDDLE_HD void operator()(std::int64_t) const {
    *guard += *found_bad;
    *found_bad = 0;
  }
};

struct SetInputs {
  float rate_value, gradient_share_value, rank_share_value, update_share_value, average_share_value, images_value;
  std::uint64_t position_value;
  float *rate, *gradient_share, *rank_share, *update_share, *average_share, *images;
  std::uint64_t* position;
  CloseUpdate close_update;
  const float* loss_scale;
  float* loss_factor;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    close_update(i);
    *rate = rate_value;
    *gradient_share = gradient_share_value;
    *rank_share = rank_share_value;
    *update_share = update_share_value;
    *average_share = average_share_value;
    *images = images_value;
    *position = position_value;
    *loss_factor = loss_scale == nullptr ? rank_share_value : rank_share_value * *loss_scale;
  }
};

}  // namespace

StepInputs::StepInputs(Stream& stream, const Tensor& guard, const Tensor& loss_scale)
    : rate_(stream, {1}),
      gradient_share_(stream, {1}),
      rank_share_(stream, {1}),
      update_share_(stream, {1}),
      average_share_(stream, {1}),
      images_(stream, {1}),
      random_position_(stream, {2}, DType::i32),
      guard_(guard),
      found_bad_(Tensor::filled(stream, {1}, 0)),
      loss_scale_(loss_scale),
      loss_factor_(stream, {1}) {}

void StepInputs::set(Stream& stream, const Values& values) {
  for_each_index(stream, 1,
                 SetInputs{static_cast<float>(values.rate), static_cast<float>(values.gradient_share),
                           static_cast<float>(values.rank_share), static_cast<float>(values.update_share),
                           static_cast<float>(values.average_share), static_cast<float>(values.images),
                           values.random_position, rate_.write(), gradient_share_.write(), rank_share_.write(),
                           update_share_.write(), average_share_.write(), images_.write(),
                           reinterpret_cast<std::uint64_t*>(random_position_.write<std::int32_t>()),
                           CloseUpdate{guard_.write(), found_bad_.write()},
                           loss_scale_.defined() ? loss_scale_.read() : nullptr, loss_factor_.write()});
}

void StepInputs::close_update(Stream& stream) {
  for_each_index(stream, 1, CloseUpdate{guard_.write(), found_bad_.write()});
}

const std::uint64_t* StepInputs::random_position() const {
  return reinterpret_cast<const std::uint64_t*>(random_position_.read<std::int32_t>());
}

}  // namespace twiddle
