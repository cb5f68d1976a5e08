#include "models/training/rank_means.h"

#include "framework/quotient_up.h"
#include "framework/running_mean.h"

namespace twiddle {

namespace {

// As floats of a bucket: each begins at a multiple of 64 bytes.
std::int64_t floats_of(const Tensor& tensor) {
  constexpr std::int64_t line = 16;
  return round_up(tensor.size(), line);
}

std::vector<Tensor> parts_of(const Tensor& bucket, const std::vector<Tensor>& tensors, std::int64_t first) {
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    parts.push_back(bucket.part(first, tensor.shape()));
    first += floats_of(tensor);
  }
  return parts;
}

std::int64_t floats_of(const std::vector<Tensor>& tensors) {
  std::int64_t floats = 0;
  for (const Tensor& tensor : tensors) floats += floats_of(tensor);
  return floats;
}

}  // namespace

RankMeans::RankMeans(Communicator& ranks, Stream& stream) : ranks_(ranks), one_(Tensor::filled(stream, {1}, 1)) {}

void RankMeans::take(Stream& stream, const Tensor& share, std::vector<Tensor> means, const std::vector<Tensor>& sums) {
  const std::int64_t floats_of_means = floats_of(means), floats = floats_of_means + floats_of(sums);
  if (!bucket_.defined()) bucket_ = Tensor(stream, {floats});
  stream.fill(bucket_.write(), floats, 0);
  std::vector<Tensor> parts_of_means = parts_of(bucket_, means, 0),
                      parts_of_sums = parts_of(bucket_, sums, floats_of_means);
  move_means(stream, means, parts_of_means, {share, {}});  // from 0 by the share: their product
  move_means(stream, sums, parts_of_sums, {one_, {}});
  ranks_.all_reduce(stream, bucket_.write(), floats);
  parts_of_means.insert(parts_of_means.end(), parts_of_sums.begin(), parts_of_sums.end());
  means.insert(means.end(), sums.begin(), sums.end());
  move_means(stream, parts_of_means, means, {one_, {}});
}

}  // namespace twiddle
