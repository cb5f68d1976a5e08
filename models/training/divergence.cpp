#include "models/training/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "data/formats/dataset.h"
#include "framework/error.h"
#include "framework/text.h"
#include "models/training/bad_image.h"

namespace twiddle {

namespace {

std::string first_bad_value(Context& ctx, const Sequential& net, TrainStep& step, const Batch& batch,
                            const Divergence& facts) try {
  if (!batch.images.defined()) return "no image was here";
  const std::string layer = net.first_bad_layer(ctx, Variable(batch.images));
  if (!layer.empty()) return join("first bad value: output of '", layer, "'");
  if (facts.exact && !std::isfinite(facts.loss)) return "every layer's output is finite: the labels or the loss itself";
  const std::string gradient = step.first_bad_gradient(batch);
  if (!gradient.empty()) return join("every layer's output is finite; first bad gradient: '", gradient, "'");
  if (facts.exact) return "every layer's output and every gradient is finite: the update itself overflowed";
  return join("the images of step ", facts.step,
              " leave every layer's output finite: those of an earlier step, the labels or the loss itself");
} catch (const Error& error) {  // the divergence matters more than running out of memory while locating it
  return join("cannot find where it began: ", error.what());
}

// Also empty if it cannot be determined.
std::string bad_image_here(Context& ctx, const Batch& batch, const Dataset& dataset) try {
  return first_bad_image(*ctx.stream, batch, dataset);
} catch (const Error&) {
  return "";
}

std::string what_ranks_found(Communicator& ranks, const std::string& own) {
  const std::vector<std::string> all = ranks.gather(own);
  if (std::equal(all.begin() + 1, all.end(), all.begin())) return own;
  std::string text;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    text += join(rank > 0 ? "; " : "", "on rank ", rank, ": ", all[rank]);
  return text;
}

// Three digits are enough for a learning rate.
std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return format_number(std::strtod(text, nullptr));
}

}  // namespace

void report_divergence(Context& ctx, const Sequential& net, TrainStep& step, const Batch& batch, const Dataset& dataset,
                       const Divergence& facts, Communicator& ranks) {
  ctx.ranks = nullptr;  // this run is over, and each rank goes through its own rows as far as it has to
  const std::string became = std::isinf(facts.loss) ? " became infinite" : " became nan";
  const std::string what = !facts.exact                ? "the loss or an update" + became
                           : std::isfinite(facts.loss) ? "an update became nan or infinite"
                                                       : "loss" + became;
  const std::string lower = facts.rate > 0 ? join(" (try ", short_number(facts.rate / 10), ")") : "";
  const std::string saved = facts.last_checkpoint.empty() ? "" : "\n  last good checkpoint: " + facts.last_checkpoint;
  const std::string range = step.scales_loss() ? ", values above 65,504, fp16's largest (try 'precision: bf16')" : "";
  const std::string image = bad_image_here(ctx, batch, dataset);
  const std::string causes = any(ranks, !image.empty()) ? join("Not the learning rate: ", bad_image_advice, ".")
                                                        : join("Usual causes: a learning rate too high", lower,
                                                               ", data not normalised", range, ".");
  throw Error(ErrorKind::diverged,
              join(what, " at epoch ", facts.epoch, facts.exact ? ", step " : ", at or before step ", facts.step,
                   " (learning rate ", short_number(facts.rate), "); ",
                   what_ranks_found(ranks, image.empty() ? first_bad_value(ctx, net, step, batch, facts) : image),
                   ".\n  ", causes, saved));
}

}  // namespace twiddle
