#include "models/training/sharded_optimizer.h"

#include <algorithm>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/parameter.h"
#include "framework/quotient_up.h"
#include "framework/ranks/pack.h"

namespace twiddle {

namespace {

// Parameters and shards are aligned to 64 bytes: a cache line, and what kernels load at once.
constexpr std::int64_t line_floats = 16;

std::int64_t floats_of(const Parameter& parameter) {
  return round_up(count_of(parameter.shape), line_floats);
}

// An optimizer names what it keeps of a parameter after it, "momentum.conv1.weight".
std::string name_of(const std::string& kind, const Parameter& parameter) {
  return kind + "." + parameter.name;
}

void wait_for_event(Stream& stream, std::shared_ptr<Event>& event) {
  if (event) stream.wait_event(*std::exchange(event, nullptr));
}

using State = std::map<std::string, Tensor>;

State state_of(const Optimizer& optimizer) {
  const auto list = optimizer.state();
  return {list.begin(), list.end()};
}

// State of one number per parameter, such as Adam's count of steps. It is equal on all ranks that have a part of the
// parameter; the others do not have it.
std::string numbers_in(Stream& stream, const State& state) {
  std::vector<std::string> names;
  std::vector<float> numbers;
  for (const auto& [name, tensor] : state)
    if (tensor.size() == 1) names.push_back(name), numbers.push_back(tensor.to_vector(stream).at(0));
  return pack(names, numbers);
}

// All that an optimizer keeps of a parameter: "mean.conv1.weight", "steps.conv1.weight".
void forget(State& state, const Parameter& parameter) {
  std::erase_if(state,
                [&](const auto& entry) { return entry.first.substr(entry.first.find('.') + 1) == parameter.name; });
}

void read_numbers(Stream& stream, const std::string& text, State& state) {
  const auto [names, numbers] = unpack<std::vector<std::string>, std::vector<float>>(text);
  for (std::size_t i = 0; i < names.size(); ++i) state[names[i]] = Tensor::filled(stream, {1}, numbers.at(i));
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(Communicator& ranks, Context& ctx, const std::vector<Parameter*>& parameters,
                                   Optimizer& optimizer, bool gather_in_forward)
    : ranks_(ranks), ctx_(ctx), stream_(*ctx.stream), optimizer_(optimizer), gather_in_forward_(gather_in_forward) {
  lay_out(parameters);
  for (Bucket& bucket : buckets_) {
    for (const Slice& slice : bucket.slices) bucket_of_[&slice.parameter->variable.value()] = &bucket;
    find_shard(bucket);
    move_into(bucket);
  }
  std::reverse(gradients_.begin(), gradients_.end());  // buckets begin with the last parameter
  keep_state_of_shard();
  for (Parameter& part : parts_) shard_.push_back(&part);
  optimizer_.prepare(stream_, shard_);
  ctx_.tape.set_hooks(this);
}

void ShardedOptimizer::lay_out(const std::vector<Parameter*>& parameters) {
  std::int64_t left = 0;  // floats that are in no bucket yet
  for (const Parameter* parameter : parameters)
    if (parameter->trainable) left += floats_of(*parameter);
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    if (!(*parameter)->trainable) continue;
    if (buckets_.empty() || buckets_.back().floats >= std::max(left, least_bucket)) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket.slices.push_back({*parameter, bucket.floats, 0, 0});
    bucket.floats += floats_of(**parameter);
    left -= floats_of(**parameter);
  }
}

void ShardedOptimizer::find_shard(Bucket& bucket) const {
  bucket.floats = round_up(bucket.floats, line_floats * ranks_.size());
  const std::int64_t shard = bucket.floats / ranks_.size(), begin = shard * ranks_.rank(), end = begin + shard;
  for (Slice& slice : bucket.slices) {
    const std::int64_t slice_end = slice.offset + count_of(slice.parameter->shape);
    slice.first = std::max(begin - slice.offset, std::int64_t(0));
    slice.count = std::max(std::min(end, slice_end) - (slice.offset + slice.first), std::int64_t(0));
  }
}

void ShardedOptimizer::move_into(Bucket& bucket) {
  for (Tensor* tensor : {&bucket.weights, &bucket.gradients}) {
    *tensor = Tensor::over(stream_.device(), {bucket.floats}, ranks_.allocate(stream_, bucket.floats));
    stream_.fill(tensor->write(), bucket.floats, 0);
  }
  for (const Slice& slice : bucket.slices) {
    const Parameter& parameter = *slice.parameter;
    Tensor& value = parameter.variable.value();
    Tensor moved = bucket.weights.part(slice.offset, parameter.shape);
    stream_.copy(moved.write(), value.read(), value.bytes());
    value = moved;
    gradients_.push_back(bucket.gradients.part(slice.offset, parameter.shape));
    if (slice.count == 0) continue;
    Parameter& part = parts_.emplace_back(parameter);
    part.shape = {slice.count};
    part.variable = Variable(bucket.weights.part(slice.offset + slice.first, part.shape), true);
    part.variable.grad() = bucket.gradients.part(slice.offset + slice.first, part.shape);
  }
}

void ShardedOptimizer::keep_state_of_shard() const {
  State state = state_of(optimizer_);  // including parameters that are frozen now and may be trained later
  for (const Bucket& bucket : buckets_)
    for (const Slice& slice : bucket.slices) {
      // Including its count of steps, which this rank would not increase and would send to the others.
      if (slice.count == 0) forget(state, *slice.parameter);
      for (const std::string& kind : optimizer_.state_names()) {
        const auto whole = state.find(name_of(kind, *slice.parameter));
        if (whole == state.end()) continue;
        const Tensor values = whole->second;
        Tensor& kept = whole->second = Tensor(stream_, {slice.count});
        stream_.copy(kept.write(), values.read() + slice.first, kept.bytes());
      }
    }
  optimizer_.restore({state.begin(), state.end()});
}

// An earlier step that threw may have left collectives that no stream waits for.
void ShardedOptimizer::begin_step(bool reduce_in_backward) {
  reduce_in_backward_ = reduce_in_backward;
  begun_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.incomplete = bucket.slices.size();
    bucket.reduced = bucket.gathered = nullptr;
  }
  if (gather_in_forward_) begin_all_gather();
}

void ShardedOptimizer::begin_all_gather() {
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
    bucket->gathered = ranks_.begin_all_gather(stream_, bucket->weights.write(), bucket->floats);
    for (const Slice& slice : bucket->slices) slice.parameter->variable.value().write();  // a new version
  }
}

void ShardedOptimizer::before_read(const Variable& parameter) {
  const auto bucket = bucket_of_.find(&parameter.value());
  if (bucket != bucket_of_.end()) wait_for_event(stream_, bucket->second->gathered);
}

void ShardedOptimizer::gradient_complete(const Variable& variable) {
  const auto bucket = bucket_of_.find(&variable.value());
  if (!reduce_in_backward_ || bucket == bucket_of_.end()) return;
  --bucket->second->incomplete;
  while (begun_ < buckets_.size() && buckets_[begun_].incomplete == 0) begin_next_reduce();
}

void ShardedOptimizer::begin_next_reduce() {
  Bucket& bucket = buckets_[begun_++];
  bucket.reduced = ranks_.begin_reduce_scatter(stream_, bucket.gradients.write(), bucket.floats);
}

void ShardedOptimizer::reduce_gradients() {
  reduce_in_backward_ = false;
  wait_for_weights();
  while (begun_ < buckets_.size()) begin_next_reduce();
  for (Bucket& bucket : buckets_) wait_for_event(stream_, bucket.reduced);
  begun_ = 0;
}

void ShardedOptimizer::end_update() {
  must_gather_ = true;
  if (!gather_in_forward_) all_gather_weights();
}

void ShardedOptimizer::all_gather_weights() {
  if (!std::exchange(must_gather_, false)) return;
  begin_all_gather();
  wait_for_weights();
}

void ShardedOptimizer::wait_for_weights() {
  for (Bucket& bucket : buckets_) wait_for_event(stream_, bucket.gathered);
}

std::vector<std::pair<std::string, Tensor>> ShardedOptimizer::whole_state() {
  const State own = state_of(optimizer_);
  State whole = own;
  for (const std::string& text : ranks_.gather(numbers_in(stream_, own))) read_numbers(stream_, text, whole);
  for (const std::string& kind : optimizer_.state_names())
    for (const Bucket& bucket : buckets_) {
      Tensor all = Tensor::filled(stream_, {bucket.floats}, 0);
      for (const Slice& slice : bucket.slices) {
        if (slice.count == 0) continue;
        const Tensor& kept = own.at(name_of(kind, *slice.parameter));
        stream_.copy(all.write() + slice.offset + slice.first, kept.read(), kept.bytes());
      }
      ranks_.all_gather(stream_, all.write(), bucket.floats);
      for (const Slice& slice : bucket.slices)
        whole[name_of(kind, *slice.parameter)] = all.part(slice.offset, slice.parameter->shape);
    }
  return {whole.begin(), whole.end()};
}

}  // namespace twiddle
