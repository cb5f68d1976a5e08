#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image.h"
#include "framework/tensor.h"
#include "models/evaluation/metric.h"

namespace twiddle {

class Communicator;
class Loader;
class Loss;
class Sequential;
struct Context;

// Images of each kind that an evaluation keeps as examples.
constexpr std::size_t examples_kept = 12;

// Images by (actual, predicted) class. Only pairs that occur are kept: with many classes, nearly none does.
using Confusion = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;

// The metrics of a net on a dataset, and its errors. The form of the errors depends on the kind of target.
struct EvalResult {
  TargetKind target = TargetKind::label;
  Scores scores;
  std::int64_t images = 0;
  std::int64_t undefined = 0;  // images with non-finite outputs: no prediction, counted as wrong

  // For one label per image.
  std::int64_t classes = 0;           // that the dataset names
  Confusion confusion;                // of predictions that are a class of the data
  std::vector<std::int64_t> outside;  // [actual]: predicted as an output that is not a class of the data
  struct Wrong {
    std::int64_t index = 0, actual = 0, predicted = 0;
    float probability = 0;  // of the prediction
  };
  std::vector<Wrong> wrong;  // the most confident mistakes first, a few

  // For any number of labels per image.
  struct LabelScore {
    std::int64_t images = 0;                     // that have the label
    double average_precision = Scores::unknown;  // if an image has it
  };
  std::vector<LabelScore> labels;  // by label
  struct Scored {
    std::int64_t index = 0;
    double loss = 0;
    std::vector<std::int64_t> labels;
    std::vector<float> probabilities;  // by class of the dataset
  };
  std::vector<Scored> worst;  // by loss, a few

  // For images as targets: the first few outputs.
  struct Restored {
    std::int64_t index = 0;
    double psnr = 0;
    Image input, output, target;  // empty where an evaluation was read from a file
  };
  std::vector<Restored> restored;
};
// The loader's labels must be classes of its dataset, and those outputs of the net: an Error of kind data where one is
// not. If ranks share the batches of their loaders, each evaluates its rows and all get the same result: that of one
// process, except for the rounding of the loss.
EvalResult evaluate(Context& ctx, const Sequential& net, const Loss& loss, Loader& loader,
                    std::int64_t limit_batches = 0, const std::function<bool()>& cancelled = {},
                    Communicator* ranks = nullptr);

// Throws an Error of kind diverged if outputs or the loss are not finite: scores of such an evaluation mean nothing.
void expect_finite(const EvalResult& result, const std::function<std::string()>& what);

// Most host memory that an evaluation adds to that of a training step: the outputs of a batch, and what is counted for
// `images` images.
std::size_t evaluation_bytes(TargetKind target, std::int64_t batch, const Shape& output, std::int64_t images);

}  // namespace twiddle
