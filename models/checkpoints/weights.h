#pragma once
#include <map>
#include <string>
#include <vector>

#include "framework/tensor.h"
#include "models/checkpoints/safetensors.h"

namespace twiddle {

class Sequential;
struct Context;

inline constexpr const char* format_version = "1";  // of weights and checkpoints

// Weights alone, and the metadata of their file.
struct WeightsInfo {
  std::vector<std::string> classes;  // names kept with the weights; may be empty
};

// Every parameter of the net by name, batch norm's running state included; `more` joins the file's metadata. Returns
// the checksum that stands for the whole file. With bf16 or f16 as `store`, weights of convolutions and linear layers
// are rounded to it, and all else stays f32. An Error of kind config names a weight that overflows; no file is written.
std::string save_weights(const std::string& path, Context& ctx, const Sequential& net,
                         const std::vector<std::string>& classes, const Metadata& more = {}, DType store = DType::f32);

// Names and shapes must fit, or nothing is changed and the message tells which do not. Names may be ours or PyTorch's
// (torch_names.h).
WeightsInfo load_weights(const std::string& path, Context& ctx, const Sequential& net);

// What a network took of a file that was made for another, layer by layer.
struct TakenWeights {
  struct Layer {
    std::string name, misfits;  // misfits: empty if all of its tensors were loaded, else none was
  };
  std::vector<Layer> layers;         // those that have parameters
  std::vector<std::string> left;     // tensors of the file that the network has no place for, with their shapes
  std::vector<std::string> classes;  // names kept with the weights; may be empty
  bool has_last_layer() const;       // that the file's classes belong to
  std::size_t taken() const;         // layers
};

// Loads the layers whose tensors are all in the file, by name and shape; the others keep their values. If no layer
// matches, throws an Error of kind data and changes nothing.
TakenWeights take_weights(const std::string& path, Context& ctx, const Sequential& net);

// The names kept with weights; may be empty.
std::vector<std::string> saved_classes(const std::string& path);

// The two steps of loading. First everything that can fail: new tensors in the order of net.parameters(), or one Error
// that lists the tensors that are missing, unexpected, or of another shape or type. Then what cannot.
std::vector<Tensor> fitting_values(Context& ctx, const Sequential& net, const ArraySource& contents,
                                   const std::string& path);
void put_values(const Sequential& net, std::vector<Tensor> values);

// Throws unless the file is of a format that this program reads; one from elsewhere names none and will do.
void check_format_version(const ArraySource& contents, const std::string& path);

}  // namespace twiddle
