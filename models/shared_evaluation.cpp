#include "models/shared_evaluation.h"

#include <algorithm>
#include <cstring>
#include <iterator>

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

std::string text_of(Stream& stream, bool more, const EvaluatedBatch& own) {
  RowWriter writer;
  const std::int64_t count = more ? own.batch.rows_here() : 0;
  writer.add(more ? 1 : 0);
  writer.add(count);
  if (count == 0) return writer.bytes();
  writer.add(own.batch.indices);
  write_rows(stream, own.batch.targets, writer);
  write_rows(stream, own.output, writer);
  return writer.bytes();
}

// False: one rank has no more.
bool put_together(Stream& stream, const std::vector<std::string>& texts, EvaluatedBatch& whole) {
  whole = {};
  std::int64_t all = 0;
  Rows targets, output;
  for (const std::string& text : texts) {
    RowReader reader(text);
    if (reader.number() == 0) return false;
    const std::int64_t count = reader.number();
    if (count == 0) continue;
    reader.append_to(whole.batch.indices, count);
    read_rows(reader, count, targets);
    read_rows(reader, count, output);
    all += count;
  }
  if (all == 0) return true;
  whole.batch.targets = targets.tensor(stream, all);
  whole.output = output.tensor(stream, all);
  return true;
}

// What a rank's rows of a batch of images came to.
struct JudgedRows {
  bool more = true;
  double loss = 0;
  std::vector<double> ratios;
};

std::string text_of(const JudgedRows& rows) {
  RowWriter writer;
  writer.add(rows.more ? 1 : 0);
  writer.add(std::ssize(rows.ratios));
  writer.add(std::vector<double>{rows.loss});
  writer.add(rows.ratios);
  return writer.bytes();
}

JudgedRows read_judged_rows(const std::string& text) {
  RowReader reader(text);
  JudgedRows rows;
  rows.more = reader.number() != 0;
  const std::int64_t count = reader.number();
  std::vector<double> loss;
  reader.append_to(loss, 1);
  rows.loss = loss[0];
  reader.append_to(rows.ratios, count);
  return rows;
}

void write_picture(const Image& image, RowWriter& writer) {
  writer.add(std::vector<std::int64_t>{image.channels, image.height, image.width, std::ssize(image.pixels)});
  writer.add(image.pixels);
}

Image read_picture_of_rank(RowReader& reader) {
  Image image;
  image.channels = static_cast<int>(reader.number());
  image.height = static_cast<int>(reader.number());
  image.width = static_cast<int>(reader.number());
  reader.append_to(image.pixels, reader.number());
  return image;
}

std::string text_of(const std::vector<EvalResult::Restored>& restored) {
  RowWriter writer;
  writer.add(std::ssize(restored));
  for (const EvalResult::Restored& each : restored) {
    writer.add(each.index);
    writer.add(std::vector<double>{each.psnr});
    for (const Image* picture : {&each.input, &each.output, &each.target}) write_picture(*picture, writer);
  }
  return writer.bytes();
}

std::vector<EvalResult::Restored> read_restored(const std::string& text) {
  RowReader reader(text);
  std::vector<EvalResult::Restored> restored(static_cast<std::size_t>(reader.number()));
  for (EvalResult::Restored& each : restored) {
    each.index = reader.number();
    std::vector<double> psnr;
    reader.append_to(psnr, 1);
    each.psnr = psnr[0];
    for (Image* picture : {&each.input, &each.output, &each.target}) *picture = read_picture_of_rank(reader);
  }
  return restored;
}

// Selects this rank's rows, which begin at `first` among those of all ranks, and counts them from its own first one.
std::vector<std::size_t> own_rows(const std::vector<std::size_t>& rows, std::size_t first, std::size_t count) {
  std::vector<std::size_t> own;
  for (const std::size_t row : rows)
    if (row >= first && row < first + count) own.push_back(row - first);
  return own;
}

}  // namespace

bool next_of_ranks(Communicator& ranks, Stream& stream, EvaluatedBatch& whole,
                   const std::function<bool(EvaluatedBatch&)>& next) {
  do {
    const std::vector<std::string> texts = gather_or_fail(ranks, [&] {
      EvaluatedBatch own;
      const bool more = next(own);
      return text_of(stream, more, own);
    });
    if (!put_together(stream, texts, whole)) return false;
  } while (whole.batch.indices.empty());
  return true;
}

std::optional<JudgedBatch> judge_next_of_ranks(Communicator& ranks, ImageJudge& judge,
                                               const std::function<bool(EvaluatedBatch&)>& next,
                                               const std::function<double(const EvaluatedBatch&)>& loss) {
  JudgedBatch whole;
  while (whole.images == 0) {
    EvaluatedBatch own;
    JudgedRows judged;
    const std::vector<std::string> texts = gather_or_fail(ranks, [&] {
      judged.more = next(own);
      if (judged.more && own.batch.rows_here() > 0)
        judged.loss = loss(own), judged.ratios = judge.judge(own.batch, own.output);
      return text_of(judged);
    });
    std::vector<double> ratios;  // of all ranks' rows, in the batch's order
    std::size_t first = 0;       // of this rank's
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      const JudgedRows rows = read_judged_rows(texts[rank]);
      if (!rows.more) return std::nullopt;
      if (static_cast<int>(rank) == ranks.rank()) first = ratios.size();
      ratios.insert(ratios.end(), rows.ratios.begin(), rows.ratios.end());
      whole.loss += rows.loss * static_cast<double>(rows.ratios.size());
    }
    whole.images = std::ssize(ratios);
    const std::vector<std::size_t> shown = judge.count(ratios);
    if (shown.empty()) continue;
    const auto pictures = [&] {
      const std::vector<std::size_t> rows = own_rows(shown, first, judged.ratios.size());
      return text_of(judge.pictures(own.batch, own.output, rows, judged.ratios));
    };
    for (const std::string& text : gather_or_fail(ranks, pictures)) judge.show(read_restored(text));
  }
  whole.loss /= static_cast<double>(whole.images);
  return whole;
}

}  // namespace twiddle
