#pragma once
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/device.h"
#include "framework/dtype.h"

namespace twiddle {

using Shape = std::vector<std::int64_t>;
std::int64_t count_of(const Shape& shape);           // elements; 1 for an empty shape
Shape with_batch(std::int64_t batch, Shape of_one);  // {128, 3, 224, 224} of 128 and {3, 224, 224}
std::string to_string(const Shape& shape);           // "128x3x224x224"

// Names one state of one storage: every write() starts a new one.
struct Version {
  std::uint64_t storage = 0, writes = 0;
  auto operator<=>(const Version&) const = default;
};

// A shared handle to contiguous elements on one stream's device; copying the handle does not copy the elements.
// New elements are uninitialised.
class Tensor {
 public:
  Tensor() = default;  // holds nothing: defined() is false
  Tensor(Stream& stream, Shape shape, DType type = DType::f32);
  // Wraps existing memory, which `block` owns, without a copy. It must be aligned like memory from Stream::allocate().
  static Tensor over(Device device, Shape shape, std::shared_ptr<void> block, DType type = DType::f32);
  static Tensor filled(Stream& stream, Shape shape, float value);
  template <class T = float>
  static Tensor from(Stream& stream, Shape shape, const std::vector<T>& values);  // a copy; the count must fit

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  std::int64_t dim(int axis) const { return shape_.at(static_cast<std::size_t>(axis)); }
  std::int64_t size() const { return storage_ ? count_of(shape_) : 0; }
  std::size_t bytes() const { return storage_ ? static_cast<std::size_t>(size() * size_of(type())) : 0; }
  DType type() const;
  Device device() const;

  // T must be the tensor's type.
  template <class T = float>
  const T* read() const;
  template <class T = float>
  T* write();  // for any change of the elements: starts a new version
  Version version() const;
  std::weak_ptr<const void> life() const { return storage_; }  // expires with the last owner of the elements

  Tensor reshaped(Shape shape) const;  // the same storage; the count must fit
  // Returns a view of some elements. The view has separate versions and keeps the memory of the whole tensor alive.
  Tensor part(std::int64_t first, Shape shape) const;
  template <class T = float>
  std::vector<T> to_vector(Stream& stream) const;  // a copy on the host; waits for the stream

 private:
  struct Storage;
  std::shared_ptr<Storage> storage_;
  Shape shape_;
};

}  // namespace twiddle
