#pragma once
#include <map>
#include <string>

#include "layers/sequential.h"
#include "models/checkpoints/safetensors.h"

namespace twiddle {

// PyTorch numbers the members of an nn.Sequential, and counts those without parameters too: torchvision's AlexNet has
// features.0.weight, features.3.weight, ..., classifier.6.bias. Where every array of a file is called so, the layers
// with parameters are matched in order: the file's by number, those under `features` before those under `classifier`,
// to the net's. In other files layers must have the names that they have in the net, as torchvision's ResNets and
// models/resnet18.yaml do ("layer1.0.conv1"). In both, `weight` of a norm is our `scale`.
//
// Returns the file's name for each parameter that has a different name there. Shapes are not checked.
std::map<std::string, std::string> torch_names(const Sequential& net, const ArrayTable& arrays);

}  // namespace twiddle
