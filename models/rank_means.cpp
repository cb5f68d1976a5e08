#include "models/rank_means.h"

#include "framework/tensor_ops.h"

namespace twiddle {

void RankMeans::take(double share, std::vector<Tensor>& tensors) {
  const auto factor = static_cast<float>(share);
  for (Tensor& tensor : tensors) {
    const std::int64_t count = tensor.size();
    if (count >= large_floats) {
      float* const values = tensor.write();
      scale(stream_, factor, count, values, values);
      ranks_.sum(stream_, values, count);
      continue;
    }
    if (used_ + count > bucket_floats) flush();
    if (!bucket_.defined()) bucket_ = Tensor(stream_, {bucket_floats});
    scale(stream_, factor, count, tensor.read(), bucket_.write() + used_);
    packed_.push_back(&tensor);
    used_ += count;
  }
  flush();
}

void RankMeans::flush() {
  if (used_ == 0) return;
  float* from = bucket_.write();
  ranks_.sum(stream_, from, used_);
  for (Tensor* tensor : packed_) {
    stream_.copy(tensor->write(), from, tensor->bytes());
    from += tensor->size();
  }
  packed_.clear();
  used_ = 0;
}

}  // namespace twiddle
