#include "models/shared_evaluation.h"

#include <algorithm>
#include <cstring>

#include "framework/error.h"

namespace twiddle {

namespace {

// A rank's rows as bytes, for the journey: whether there are more, how many rows, and then part by part what they have.
class RowWriter {
 public:
  template <class T>
  void add(const std::vector<T>& values) {
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void add(std::int64_t value) { add(std::vector<std::int64_t>{value}); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class RowReader {
 public:
  explicit RowReader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  void append_to(std::vector<T>& values, std::int64_t count) {
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(T), old = values.size();
    require(at_ + size <= bytes_.size(), "a rank has sent less than its rows");
    values.resize(old + static_cast<std::size_t>(count));
    if (count > 0) std::memcpy(values.data() + old, bytes_.data() + at_, size);
    at_ += size;
  }
  std::int64_t number() {
    std::vector<std::int64_t> value;
    append_to(value, 1);
    return value[0];
  }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

// A tensor whose rows come from several ranks.
struct Rows {
  Shape row;  // of one
  DType type = DType::f32;
  std::vector<float> floats;
  std::vector<std::int32_t> integers;

  Tensor tensor(Stream& stream, std::int64_t count) const {
    Shape shape{count};
    shape.insert(shape.end(), row.begin(), row.end());
    return type == DType::f32 ? Tensor::from(stream, shape, floats) : Tensor::from(stream, shape, integers);
  }
};

void write_rows(Stream& stream, const Tensor& rows, RowWriter& writer) {
  writer.add(rows.type() == DType::f32 ? 0 : 1);
  const Shape row(rows.shape().begin() + 1, rows.shape().end());
  writer.add(static_cast<std::int64_t>(row.size()));
  writer.add(row);
  if (rows.type() == DType::f32)
    writer.add(rows.to_vector(stream));
  else
    writer.add(rows.to_vector<std::int32_t>(stream));
}

void read_rows(RowReader& reader, std::int64_t count, Rows& rows) {
  rows.type = reader.number() == 0 ? DType::f32 : DType::i32;
  rows.row.clear();
  reader.append_to(rows.row, reader.number());
  if (rows.type == DType::f32)
    reader.append_to(rows.floats, count * count_of(rows.row));
  else
    reader.append_to(rows.integers, count * count_of(rows.row));
}

std::string text_of(Stream& stream, bool more, bool with_images, const EvaluatedBatch& own) {
  RowWriter writer;
  const std::int64_t count = more ? own.batch.rows_here() : 0;
  writer.add(more ? 1 : 0);
  writer.add(count);
  if (count == 0) return writer.bytes();
  writer.add(own.batch.indices);
  write_rows(stream, own.batch.targets, writer);
  write_rows(stream, own.output, writer);
  if (with_images) write_rows(stream, own.batch.images, writer);
  return writer.bytes();
}

// False: one rank has no more.
bool put_together(Stream& stream, const std::vector<std::string>& texts, bool with_images, EvaluatedBatch& whole) {
  whole = {};
  std::int64_t all = 0;
  Rows targets, output, images;
  for (const std::string& text : texts) {
    RowReader reader(text);
    if (reader.number() == 0) return false;
    const std::int64_t count = reader.number();
    if (count == 0) continue;
    reader.append_to(whole.batch.indices, count);
    read_rows(reader, count, targets);
    read_rows(reader, count, output);
    if (with_images) read_rows(reader, count, images);
    all += count;
  }
  if (all == 0) return true;
  whole.batch.targets = targets.tensor(stream, all);
  whole.output = output.tensor(stream, all);
  if (with_images) whole.batch.images = images.tensor(stream, all);
  return true;
}

}  // namespace

bool next_of_ranks(Communicator& ranks, Stream& stream, bool with_images, EvaluatedBatch& whole,
                   const std::function<bool(EvaluatedBatch&)>& next) {
  do {
    const std::vector<std::string> texts = gather_or_fail(ranks, [&] {
      EvaluatedBatch own;
      const bool more = next(own);
      return text_of(stream, more, with_images, own);
    });
    if (!put_together(stream, texts, with_images, whole)) return false;
  } while (whole.batch.indices.empty());
  return true;
}

}  // namespace twiddle
