#include "layers/avg_pool.h"
#include "layers/batch_norm.h"
#include "layers/conv/conv2d.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/global_avg_pool.h"
#include "layers/leaky_relu.h"
#include "layers/linear.h"
#include "layers/local_response_norm.h"
#include "layers/max_pool.h"
#include "layers/relu.h"
#include "layers/sigmoid.h"
#include "layers/tanh.h"

namespace twiddle {

LayerRegistry builtin_layers() {
  LayerRegistry layers("layer");
  layers.add<AvgPool>("avg_pool");
  layers.add<BatchNorm>("batch_norm");
  layers.add<Conv2d>("conv2d");
  layers.add<Dropout>("dropout");
  layers.add<Flatten>("flatten");
  layers.add<GlobalAvgPool>("global_avg_pool");
  layers.add<LeakyRelu>("leaky_relu");
  layers.add<Linear>("linear");
  layers.add<LocalResponseNorm>("local_response_norm");
  layers.add<MaxPool>("max_pool");
  layers.add<Relu>("relu");
  layers.add<Sigmoid>("sigmoid");
  layers.add<Tanh>("tanh");
  return layers;
}

}  // namespace twiddle
