#include "models/training/sharded_optimizer.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/parameter.h"
#include "framework/quotient_up.h"
#include "framework/ranks/pack.h"

namespace twiddle {

namespace {

// Parameters and shares begin at multiples of that, 64 bytes: a line of the cache, and what kernels load at once.
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

// What is one number for a whole parameter, such as Adam's count of steps, is equal on all ranks that have a piece of
// it, and those that have none know nothing of it.
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

ShardedOptimizer::ShardedOptimizer(Communicator& ranks, Stream& stream, const std::vector<Parameter*>& parameters,
                                   Optimizer& optimizer)
    : ranks_(ranks) {
  lay_out(parameters);
  for (Bucket& bucket : buckets_) {
    for (const Place& place : bucket.places) bucket_of_[place.parameter] = &bucket;
    find_share(bucket);
    move_in(stream, bucket);
  }
  std::reverse(gradients_.begin(), gradients_.end());  // buckets begin with the last parameter
  keep_state_of_share(stream, optimizer);
  for (Parameter& piece : pieces_) share_.push_back(&piece);
  optimizer.prepare(stream, share_);
}

void ShardedOptimizer::lay_out(const std::vector<Parameter*>& parameters) {
  std::int64_t left = 0;  // floats that are in no bucket yet
  for (const Parameter* parameter : parameters)
    if (parameter->trainable) left += floats_of(*parameter);
  for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter) {
    if (!(*parameter)->trainable) continue;
    if (buckets_.empty() || buckets_.back().floats >= std::max(left, least_bucket)) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket.places.push_back({*parameter, bucket.floats, 0, 0});
    bucket.floats += floats_of(**parameter);
    left -= floats_of(**parameter);
  }
}

void ShardedOptimizer::find_share(Bucket& bucket) const {
  bucket.floats = round_up(bucket.floats, line_floats * ranks_.size());
  const std::int64_t share = bucket.floats / ranks_.size(), begin = share * ranks_.rank(), end = begin + share;
  for (Place& place : bucket.places) {
    const std::int64_t place_end = place.begin + count_of(place.parameter->shape);
    place.first = std::max(begin - place.begin, std::int64_t(0));
    place.count = std::max(std::min(end, place_end) - (place.begin + place.first), std::int64_t(0));
  }
}

void ShardedOptimizer::move_in(Stream& stream, Bucket& bucket) {
  for (Tensor* tensor : {&bucket.weights, &bucket.gradients}) {
    *tensor = Tensor::over(stream.device(), {bucket.floats}, ranks_.allocate(stream, bucket.floats));
    stream.fill(tensor->write(), bucket.floats, 0);
  }
  for (const Place& place : bucket.places) {
    const Parameter& parameter = *place.parameter;
    Tensor& value = parameter.variable.value();
    Tensor moved = bucket.weights.part(place.begin, parameter.shape);
    stream.copy(moved.write(), value.read(), value.bytes());
    value = moved;
    gradients_.push_back(bucket.gradients.part(place.begin, parameter.shape));
    if (place.count == 0) continue;
    Parameter& piece = pieces_.emplace_back(parameter);
    piece.shape = {place.count};
    piece.variable = Variable(bucket.weights.part(place.begin + place.first, piece.shape), true);
    piece.variable.grad() = bucket.gradients.part(place.begin + place.first, piece.shape);
  }
}

void ShardedOptimizer::keep_state_of_share(Stream& stream, Optimizer& optimizer) const {
  State state = state_of(optimizer);  // also that of parameters which are not trained now, and may be later
  for (const Bucket& bucket : buckets_)
    for (const Place& place : bucket.places) {
      // Its count of steps, too, which this rank would not count on and would yet tell the others.
      if (place.count == 0) forget(state, *place.parameter);
      for (const std::string& kind : optimizer.state_names()) {
        const auto whole = state.find(name_of(kind, *place.parameter));
        if (whole == state.end()) continue;
        const Tensor values = whole->second;
        Tensor& kept = whole->second = Tensor(stream, {place.count});
        stream.copy(kept.write(), values.read() + place.first, kept.bytes());
      }
    }
  optimizer.restore({state.begin(), state.end()});
}

void ShardedOptimizer::begin_sums(Stream& stream) {
  const auto is_complete = [](const Bucket& bucket) {
    return std::all_of(bucket.places.begin(), bucket.places.end(), [](const Place& place) {
      const Variable& variable = place.parameter->variable;
      return variable.grad().defined() && !variable.is_in_use();
    });
  };
  while (begun_ < buckets_.size() && is_complete(buckets_[begun_])) begin_next_sum(stream);
}

void ShardedOptimizer::begin_next_sum(Stream& stream) {
  Bucket& bucket = buckets_[begun_++];
  bucket.summed = ranks_.begin_reduce_scatter(stream, bucket.gradients.write(), bucket.floats);
}

void ShardedOptimizer::sum_gradients(Stream& stream) {
  while (begun_ < buckets_.size()) begin_next_sum(stream);
  for (Bucket& bucket : buckets_) wait_for_event(stream, bucket.summed);
  begun_ = 0;
}

void ShardedOptimizer::begin_hand_out(Stream& stream) {
  for (auto bucket = buckets_.rbegin(); bucket != buckets_.rend(); ++bucket) {
    bucket->handed_out = ranks_.begin_all_gather(stream, bucket->weights.write(), bucket->floats);
    for (const Place& place : bucket->places) place.parameter->variable.value().write();  // a new version
  }
}

void ShardedOptimizer::wait_for(Stream& stream, const Parameter& parameter) {
  const auto bucket = bucket_of_.find(&parameter);
  if (bucket != bucket_of_.end()) wait_for_event(stream, bucket->second->handed_out);
}

void ShardedOptimizer::wait_for_all(Stream& stream) {
  for (Bucket& bucket : buckets_) wait_for_event(stream, bucket.handed_out);
}

void ShardedOptimizer::hand_out(Stream& stream) {
  begin_hand_out(stream);
  wait_for_all(stream);
}

void ShardedOptimizer::forget_begun() {
  begun_ = 0;
  for (Bucket& bucket : buckets_) bucket.summed = bucket.handed_out = nullptr;
}

std::vector<std::pair<std::string, Tensor>> ShardedOptimizer::whole_state(Stream& stream, const Optimizer& optimizer) {
  const State own = state_of(optimizer);
  State whole = own;
  for (const std::string& text : ranks_.gather(numbers_in(stream, own))) read_numbers(stream, text, whole);
  for (const std::string& kind : optimizer.state_names())
    for (const Bucket& bucket : buckets_) {
      Tensor all = Tensor::filled(stream, {bucket.floats}, 0);
      for (const Place& place : bucket.places) {
        if (place.count == 0) continue;
        const Tensor& kept = own.at(name_of(kind, *place.parameter));
        stream.copy(all.write() + place.begin + place.first, kept.read(), kept.bytes());
      }
      ranks_.all_gather(stream, all.write(), bucket.floats);
      for (const Place& place : bucket.places)
        whole[name_of(kind, *place.parameter)] = all.part(place.begin, place.parameter->shape);
    }
  return {whole.begin(), whole.end()};
}

}  // namespace twiddle
