#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "data/loader.h"
#include "layers/sequential.h"
#include "models/metric.h"

namespace twiddle {

// How well a net does on a dataset, and where it errs.
struct EvalResult {
  Scores scores;
  std::int64_t images = 0;
  std::int64_t classes = 0;             // that the dataset names
  std::vector<std::int64_t> confusion;  // [actual * classes + predicted]
  std::vector<std::int64_t> outside;    // [actual]: taken for an output that is no class of the data
  std::int64_t undefined = 0;           // images whose outputs are not finite: they are taken for nothing, and wrong
  struct Wrong {
    std::int64_t index = 0, actual = 0, predicted = 0;
    float probability = 0;  // of the prediction
  };
  std::vector<Wrong> wrong;  // the most confident mistakes first, a few
};
// The loader's labels must be classes of its dataset, and those outputs of the net: an Error of kind data where one is
// not.
EvalResult evaluate(Context& ctx, const Sequential& net, Loader& loader, std::int64_t limit_batches = 0,
                    const std::function<bool()>& cancelled = {});

}  // namespace twiddle
