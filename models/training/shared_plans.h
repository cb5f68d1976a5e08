#pragma once
#include "layers/conv/tuner/measuring.h"

namespace twiddle {

class Communicator;
struct Context;
struct Model;

// Before ranks train: where convolution plans are chosen by measurement, rank 0 measures, for the batch that each has,
// and the others use its choices. So all run the same kernels, no rank waits in a step for one that measures, and none
// makes the machine busy while another measures. Throws Interrupted on all ranks once `stop` is true on one: on rank 0
// between two measurements, on another one before the next pass of a layer.
void share_plans(Context& ctx, const Model& model, std::int64_t batch, Communicator& ranks,
                 const Measuring::Stop& stop = {});

}  // namespace twiddle
