#include "models/evaluation/shared_evaluation.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "framework/ranks/pack.h"

namespace twiddle {

namespace {

using Indices = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using Integers = std::vector<std::int32_t>;

// A tensor whose rows come from several ranks.
class Rows {
 public:
  static std::string packed(Stream& stream, const Tensor& rows) {
    const Shape row(rows.shape().begin() + 1, rows.shape().end());
    return rows.type() == DType::f32 ? pack(row, rows.to_vector(stream), Integers())
                                     : pack(row, Floats(), rows.to_vector<std::int32_t>(stream));
  }
  void add(const std::string& text) {
    auto [row, floats, integers] = unpack<Shape, Floats, Integers>(text);
    row_ = std::move(row);
    floats_.insert(floats_.end(), floats.begin(), floats.end());
    integers_.insert(integers_.end(), integers.begin(), integers.end());
  }
  Tensor tensor(Stream& stream, std::int64_t count) const {
    Shape shape{count};
    shape.insert(shape.end(), row_.begin(), row_.end());
    return integers_.empty() ? Tensor::from(stream, shape, floats_) : Tensor::from(stream, shape, integers_);
  }

 private:
  Shape row_;  // of one
  Floats floats_;
  Integers integers_;  // one of both is empty
};

std::string text_of(Stream& stream, bool more, const EvaluatedBatch& own) {
  if (!more || own.batch.rows_here() == 0) return pack(more, Indices(), std::string(), std::string());
  return pack(more, own.batch.indices, Rows::packed(stream, own.batch.targets), Rows::packed(stream, own.output));
}

// False: one rank has no more.
bool put_together(Stream& stream, const std::vector<std::string>& texts, EvaluatedBatch& whole) {
  whole = {};
  Indices& all = whole.batch.indices;
  Rows targets, output;
  for (const std::string& text : texts) {
    const auto [more, indices, target_rows, output_rows] = unpack<bool, Indices, std::string, std::string>(text);
    if (!more) return false;
    if (indices.empty()) continue;
    all.insert(all.end(), indices.begin(), indices.end());
    targets.add(target_rows);
    output.add(output_rows);
  }
  if (all.empty()) return true;
  whole.batch.targets = targets.tensor(stream, std::ssize(all));
  whole.output = output.tensor(stream, std::ssize(all));
  return true;
}

std::string text_of(const Image& image) {
  return pack(image.channels, image.height, image.width, image.pixels);
}

Image read_picture_of_rank(const std::string& text) {
  Image image;
  std::tie(image.channels, image.height, image.width, image.pixels) =
      unpack<int, int, int, std::vector<std::uint8_t>>(text);
  return image;
}

std::string text_of(const std::vector<EvalResult::Restored>& restored) {
  std::vector<std::string> texts;
  for (const EvalResult::Restored& each : restored)
    texts.push_back(pack(each.index, each.psnr, text_of(each.input), text_of(each.output), text_of(each.target)));
  return pack(texts);
}

std::vector<EvalResult::Restored> read_restored(const std::string& text) {
  std::vector<EvalResult::Restored> restored;
  for (const std::string& each : unpack<std::vector<std::string>>(text)) {
    const auto [index, psnr, input, output, target] =
        unpack<std::int64_t, double, std::string, std::string, std::string>(each);
    restored.push_back(
        {index, psnr, read_picture_of_rank(input), read_picture_of_rank(output), read_picture_of_rank(target)});
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
    std::vector<double> own_ratios;
    const std::vector<std::string> texts = gather_or_fail(ranks, [&] {
      const bool more = next(own);
      const bool has_rows = more && own.batch.rows_here() > 0;
      if (has_rows) own_ratios = judge.judge(own.batch, own.output);
      return pack(more, has_rows ? loss(own) : 0.0, own_ratios);
    });
    std::vector<double> ratios;  // of all ranks' rows, in the batch's order
    std::size_t first = 0;       // of this rank's
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      const auto [more, mean_loss, some] = unpack<bool, double, std::vector<double>>(texts[rank]);
      if (!more) return std::nullopt;
      if (static_cast<int>(rank) == ranks.rank()) first = ratios.size();
      ratios.insert(ratios.end(), some.begin(), some.end());
      whole.loss += mean_loss * static_cast<double>(some.size());
    }
    whole.images = std::ssize(ratios);
    const std::vector<std::size_t> shown = judge.count(ratios);
    if (shown.empty()) continue;
    const auto pictures = [&] {
      const std::vector<std::size_t> rows = own_rows(shown, first, own_ratios.size());
      return text_of(judge.pictures(own.batch, own.output, rows, own_ratios));
    };
    for (const std::string& text : gather_or_fail(ranks, pictures)) judge.show(read_restored(text));
  }
  whole.loss /= static_cast<double>(whole.images);
  return whole;
}

}  // namespace twiddle
