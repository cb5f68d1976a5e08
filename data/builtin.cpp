#include "data/cifar10.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/image_list.h"
#include "data/synthetic.h"

namespace twiddle {

DatasetRegistry builtin_datasets() {
  DatasetRegistry datasets("dataset");
  datasets.add<SourceOf<Idx>>("idx");
  datasets.add<SourceOf<Cifar10>>("cifar10");
  datasets.add<SourceOf<ImageFolder>>("image_folder");
  datasets.add<SourceOf<ImageList>>("image_list");
  datasets.add<SourceOf<Synthetic>>("synthetic");
  return datasets;
}

}  // namespace twiddle
