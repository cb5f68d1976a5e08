#include "data/cifar10.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/image_list.h"
#include "data/synthetic.h"

namespace twiddle {

DatasetRegistry builtin_datasets() {
  DatasetRegistry datasets("dataset");
  datasets.add<Idx>("idx");
  datasets.add<Cifar10>("cifar10");
  datasets.add<ImageFolder>("image_folder");
  datasets.add<ImageList>("image_list");
  datasets.add<Synthetic>("synthetic");
  return datasets;
}

}  // namespace twiddle
