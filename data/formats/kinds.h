#pragma once
#include "data/formats/dataset.h"

namespace twiddle {

// The kinds of datasets. Each is one file of this folder, which adds it under the name that a config has for it.
void add_cifar10(DatasetRegistry& datasets);
void add_idx(DatasetRegistry& datasets);
void add_image_folder(DatasetRegistry& datasets);
void add_image_list(DatasetRegistry& datasets);
void add_synthetic(DatasetRegistry& datasets);

}  // namespace twiddle
