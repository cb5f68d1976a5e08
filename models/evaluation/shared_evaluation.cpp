#include "models/evaluation/shared_evaluation.h"

#include <iterator>
#include <string>
#include <vector>

#include "framework/ranks/pack.h"

namespace twiddle {

std::optional<BatchResult> evaluate_next(Communicator* ranks, Evaluator& evaluator,
                                         const std::function<bool(EvaluatedBatch&)>& next,
                                         const std::function<double(const EvaluatedBatch&)>& loss) {
  const auto evaluate_own = [&] {
    EvaluatedBatch own;
    const bool more = next(own);
    if (!more || own.batch.rows_here() == 0) return pack(more, std::int64_t(0), 0.0, std::string());
    const std::string evaluated = evaluator.evaluate(own.batch, own.output);
    return pack(more, own.batch.rows_here(), loss(own), evaluated);
  };
  BatchResult whole;
  while (whole.images == 0) {
    std::vector<std::string> evaluated;
    for (const std::string& text :
         ranks == nullptr ? std::vector{evaluate_own()} : gather_or_fail(*ranks, evaluate_own)) {
      const auto [more, images, mean_loss, rows] = unpack<bool, std::int64_t, double, std::string>(text);
      if (!more) return std::nullopt;
      whole.images += images;
      whole.loss += mean_loss * static_cast<double>(images);
      if (images > 0) evaluated.push_back(rows);
    }
    for (const std::string& rows : evaluated) evaluator.count(rows);
  }
  whole.loss /= static_cast<double>(whole.images);
  return whole;
}

}  // namespace twiddle
