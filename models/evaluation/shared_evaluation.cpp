#include "models/evaluation/shared_evaluation.h"

#include <iterator>
#include <string>
#include <vector>

#include "framework/ranks/pack.h"

namespace twiddle {

std::optional<JudgedBatch> judge_next(Communicator* ranks, Judge& judge,
                                      const std::function<bool(EvaluatedBatch&)>& next,
                                      const std::function<double(const EvaluatedBatch&)>& loss) {
  const auto judge_own = [&] {
    EvaluatedBatch own;
    const bool more = next(own);
    if (!more || own.batch.rows_here() == 0) return pack(more, std::int64_t(0), 0.0, std::string());
    const std::string judged = judge.judge(own.batch, own.output);
    return pack(more, own.batch.rows_here(), loss(own), judged);
  };
  JudgedBatch whole;
  while (whole.images == 0) {
    std::vector<std::string> judged;
    for (const std::string& text : ranks == nullptr ? std::vector{judge_own()} : gather_or_fail(*ranks, judge_own)) {
      const auto [more, images, mean_loss, rows] = unpack<bool, std::int64_t, double, std::string>(text);
      if (!more) return std::nullopt;
      whole.images += images;
      whole.loss += mean_loss * static_cast<double>(images);
      if (images > 0) judged.push_back(rows);
    }
    for (const std::string& rows : judged) judge.count(rows);
  }
  whole.loss /= static_cast<double>(whole.images);
  return whole;
}

}  // namespace twiddle
