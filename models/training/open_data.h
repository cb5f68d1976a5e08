#pragma once
#include <memory>
#include <string>
#include <vector>

namespace twiddle {

class Augment;
class Dataset;
struct Experiment;

// The data section of a config, opened: datasets and the steps from an image to a network's input.
struct OpenData {
  std::unique_ptr<Dataset> train, val;  // null where the section has none
  std::shared_ptr<const Augment> train_augment, val_augment;
  std::vector<std::string> warnings = {};  // what is probably not intended, such as classes without images
};

// What a network's outputs mean, in their order, and where that is written: "data.train", a file.
struct NetworkClasses {
  std::vector<std::string> names;
  std::string origin;
  std::string hint = {};  // what to do if the data has other classes
};

// Opens what the config names. Data with more classes than the model has outputs is an Error of kind config; missing or
// damaged files are an Error of kind data.
OpenData open_data(const Experiment& experiment);

// The same without the training data, which a trained network no longer needs: nothing of it is opened. The classes of
// data.val are mapped to the network's, if those are known.
OpenData open_val_data(const Experiment& experiment, const NetworkClasses& network = {});

// Gives the datasets the network's classes, or those of data.train if the network has no names: labels are mapped by
// name, and classes may be missing in the data. An Error of kind config lists both sets of names if the data has a
// class that the network does not know.
void map_classes(const Experiment& experiment, const NetworkClasses& network, OpenData& data);

}  // namespace twiddle
