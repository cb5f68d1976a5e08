#include "data/formats/cifar10.h"
#include "data/formats/idx.h"
#include "data/formats/image_folder.h"
#include "data/formats/image_list.h"
#include "data/formats/synthetic.h"

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
