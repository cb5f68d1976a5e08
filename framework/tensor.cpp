#include "framework/tensor.h"

#include <atomic>
#include <cstddef>
#include <limits>

#include "framework/error.h"

namespace twiddle {

namespace {

std::uint64_t next_storage_id() {
  static std::atomic<std::uint64_t> counter{0};  // names only; no behaviour hangs on its values
  return ++counter;
}

}  // namespace

struct Tensor::Storage {
  std::shared_ptr<void> block;
  Device device;
  DType type;
  Version version;
};

// Here and where a tensor is read or written, a message is built only on failure: this check runs for each operand of
// each kernel.
std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t axis : shape) {
    if (axis < 0) throw Error(join("shape ", to_string(shape), " has a negative axis"));
    if (axis != 0 && count > std::numeric_limits<std::int64_t>::max() / 8 / axis)
      throw Error(join("shape ", to_string(shape), " is too large"));
    count *= axis;
  }
  return count;
}

Shape with_batch(std::int64_t batch, Shape of_one) {
  of_one.insert(of_one.begin(), batch);
  return of_one;
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::int64_t axis : shape) text += (text.empty() ? "" : "x") + std::to_string(axis);
  return text.empty() ? "scalar" : text;
}

Tensor::Tensor(Stream& stream, Shape shape, DType type) : shape_(std::move(shape)) {
  const auto bytes = static_cast<std::size_t>(count_of(shape_) * size_of(type));
  storage_ = std::make_shared<Storage>(Storage{stream.allocate(bytes), stream.device(), type, {next_storage_id(), 0}});
}

Tensor Tensor::over(Device device, Shape shape, std::shared_ptr<void> block, DType type) {
  Tensor tensor;
  tensor.shape_ = std::move(shape);
  tensor.storage_ = std::make_shared<Storage>(Storage{std::move(block), device, type, {next_storage_id(), 0}});
  return tensor;
}

Tensor Tensor::filled(Stream& stream, Shape shape, float value) {
  Tensor tensor(stream, std::move(shape));
  stream.fill(tensor.write(), tensor.size(), value);
  return tensor;
}

template <class T>
Tensor Tensor::from(Stream& stream, Shape shape, const std::vector<T>& values) {
  require(count_of(shape) == static_cast<std::int64_t>(values.size()), "a tensor ", to_string(shape), " needs ",
          count_of(shape), " values, got ", values.size());
  Tensor tensor(stream, std::move(shape), dtype_of<T>);
  stream.copy(tensor.write<T>(), values.data(), tensor.bytes());
  if (tensor.device().kind != Device::Kind::cpu) stream.synchronize();  // the vector may go away
  return tensor;
}

DType Tensor::type() const {
  require(defined(), "an undefined tensor has no type");
  return storage_->type;
}

Device Tensor::device() const {
  require(defined(), "an undefined tensor has no device");
  return storage_->device;
}

template <class T>
const T* Tensor::read() const {
  require(defined(), "reading an undefined tensor");
  if (storage_->type != dtype_of<T>)
    throw Error(
        join("a ", to_string(storage_->type), " tensor ", to_string(shape_), " read as ", to_string(dtype_of<T>)));
  return static_cast<const T*>(storage_->block.get());
}

template <class T>
T* Tensor::write() {
  require(defined(), "writing an undefined tensor");
  if (storage_->type != dtype_of<T>)
    throw Error(
        join("a ", to_string(storage_->type), " tensor ", to_string(shape_), " written as ", to_string(dtype_of<T>)));
  ++storage_->version.writes;
  return static_cast<T*>(storage_->block.get());
}

Version Tensor::version() const {
  require(defined(), "an undefined tensor has no version");
  return storage_->version;
}

Tensor Tensor::reshaped(Shape shape) const {
  require(count_of(shape) == size(), "a tensor ", to_string(shape_), " cannot be reshaped to ", to_string(shape));
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}
Tensor Tensor::part(std::int64_t first, Shape shape) const {
  require(first >= 0 && first + count_of(shape) <= size(), "no ", to_string(shape), " at ", first, " of ",
          to_string(shape_));
  auto* const begin = static_cast<std::byte*>(storage_->block.get()) + first * size_of(type());
  return over(storage_->device, std::move(shape), std::shared_ptr<void>(storage_->block, begin), type());
}

template <class T>
std::vector<T> Tensor::to_vector(Stream& stream) const {
  std::vector<T> values(static_cast<std::size_t>(size()));
  stream.copy(values.data(), read<T>(), bytes());
  stream.synchronize();
  return values;
}

#define TWIDDLE_TENSOR_OF(T)                                              \
  template Tensor Tensor::from<T>(Stream&, Shape, const std::vector<T>&); \
  template const T* Tensor::read<T>() const;                              \
  template T* Tensor::write<T>();                                         \
  template std::vector<T> Tensor::to_vector<T>(Stream&) const;
TWIDDLE_TENSOR_OF(float)
TWIDDLE_TENSOR_OF(std::int32_t)
TWIDDLE_TENSOR_OF(Bf16)
TWIDDLE_TENSOR_OF(Half)

}  // namespace twiddle
