#include "layers/avg_pool.h"
#include "layers/batch_norm.h"
#include "layers/conv/conv2d.h"
#include "layers/conv/conv_transpose2d.h"
#include "layers/drop_path.h"
#include "layers/dropout.h"
#include "layers/flatten.h"
#include "layers/gelu.h"
#include "layers/global_avg_pool.h"
#include "layers/group_norm.h"
#include "layers/hard_swish.h"
#include "layers/layer_norm.h"
#include "layers/leaky_relu.h"
#include "layers/linear.h"
#include "layers/local_response_norm.h"
#include "layers/max_pool.h"
#include "layers/pad.h"
#include "layers/prelu.h"
#include "layers/relu.h"
#include "layers/scale.h"
#include "layers/sigmoid.h"
#include "layers/silu.h"
#include "layers/tanh.h"
#include "layers/upsample.h"

namespace twiddle {

LayerRegistry builtin_layers() {
  LayerRegistry layers("layer");
  layers.add<AvgPool>("avg_pool");
  layers.add<BatchNorm>("batch_norm");
  layers.add<Conv2d>("conv2d");
  layers.add<ConvTranspose2d>("conv_transpose2d");
  layers.add<DropPath>("drop_path");
  layers.add<Dropout>("dropout");
  layers.add<Flatten>("flatten");
  layers.add<Gelu>("gelu");
  layers.add<GlobalAvgPool>("global_avg_pool");
  layers.add<GroupNorm>("group_norm");
  layers.add<HardSwish>("hard_swish");
  layers.add<LayerNorm>("layer_norm");
  layers.add<LeakyRelu>("leaky_relu");
  layers.add<Linear>("linear");
  layers.add<LocalResponseNorm>("local_response_norm");
  layers.add<MaxPool>("max_pool");
  layers.add<Pad>("pad");
  layers.add<PRelu>("prelu");
  layers.add<Relu>("relu");
  layers.add<Scale>("scale");
  layers.add<Sigmoid>("sigmoid");
  layers.add<Silu>("silu");
  layers.add<Tanh>("tanh");
  layers.add<Upsample>("upsample");
  return layers;
}

}  // namespace twiddle
