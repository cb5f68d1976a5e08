#include "data/formats/kinds.h"

namespace twiddle {

DatasetRegistry builtin_datasets() {
  DatasetRegistry datasets("dataset");
  for (const auto add : {add_idx, add_cifar10, add_image_folder, add_image_list, add_synthetic}) add(datasets);
  return datasets;
}

}  // namespace twiddle
