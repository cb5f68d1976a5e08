#include "data/augmentation/augment.h"

#include <algorithm>
#include <cmath>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Mean and deviation a channel, of values from 0 to 1.
struct Normalization {
  std::vector<double> mean, deviation;
  std::string name;
};

Normalization read_normalization(Params& data, std::size_t channels) {
  const Normalization none{std::vector<double>(channels, 0), std::vector<double>(channels, 1), ""};
  const ConfigNode* node = data.node("normalize");
  if (!node || node->kind == ConfigNode::Kind::null) return none;
  Normalization result;
  if (node->kind == ConfigNode::Kind::mapping) {
    Params options = data.child("normalize");
    result = {options.numbers("mean", {0}), options.numbers("std", {1}), "mean/std"};
    options.finish();
  } else {
    result.name = data.choice("normalize", "none", {"none", "imagenet", "cifar10"});
    if (result.name == "none") return none;
    if (result.name == "imagenet")
      result.mean = {0.485, 0.456, 0.406}, result.deviation = {0.229, 0.224, 0.225};
    else
      result.mean = {0.4914, 0.4822, 0.4465}, result.deviation = {0.2470, 0.2435, 0.2616};
  }
  bool right = true;
  for (const auto& [name, values] : {std::pair("mean", &result.mean), std::pair("std", &result.deviation)}) {
    if (values->size() == 1) values->resize(channels, values->front());
    if (channels == 0 || values->size() == channels) continue;  // 0: how many there should be is not known
    data.error("normalize", join("'", name, "' of 'normalize' has ", values->size(), " values, the model's input ",
                                 channels, channels == 1 ? " channel" : " channels"));
    right = false;
  }
  if (!std::all_of(result.deviation.begin(), result.deviation.end(), [](double value) { return value > 0; })) {
    data.error("normalize", "'std' of 'normalize' must be above 0");
    right = false;
  }
  return right && channels > 0 ? result : none;
}

}  // namespace

Augment::Augment(Params& data, const char* key, const std::vector<std::int64_t>& image_shape)
    : key_(key), shape_(image_shape) {
  require(shape_.size() == 3, "images need a model input of channels, height and width");
  const std::array<int, 2> size{static_cast<int>(shape_[1]), static_cast<int>(shape_[2])};
  const ConfigNode* list = data.node(key);
  place_ = list ? list->place : data.place();
  if (list && list->kind == ConfigNode::Kind::sequence) {
    ConfigNode used = *list;
    for (ConfigNode& entry : used.items) steps_.push_back(read_augment_step(entry, size, data.diagnostics()));
    data.use(key, std::move(used));
  } else if (list && list->kind != ConfigNode::Kind::null) {
    data.error(key, join("'", key, "' must be a list of steps"), "such as [random_crop, hflip]");
  }
  const Normalization normalization = read_normalization(data, static_cast<std::size_t>(shape_[0]));
  normalization_ = normalization.name;
  for (std::size_t c = 0; c < normalization.mean.size(); ++c) {
    mean_.push_back(static_cast<float>(255 * normalization.mean[c]));
    scale_.push_back(static_cast<float>(1 / (255 * normalization.deviation[c])));
  }
}

void Augment::operator()(Image& image, RandomSequence random, float* out) const {
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (steps_[i].apply) steps_[i].apply(image, random.split(i));
  expect_shape(image);
  write_values(image, out);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    if (steps_[i].apply_late) steps_[i].apply_late(out, shape_, random.split(i));
}

void Augment::apply_to_target(Image& target, RandomSequence random, float* out) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.changes == Changes::both)
      throw Error(ErrorKind::config, join("the step '", step.name, "' moves pixels and changes colours at once; it is ",
                                          "not for images that are the targets of others", where()));
    if (step.apply && step.changes == Changes::places) step.apply(target, random.split(i));
  }
  expect_shape(target);
  write_values(target, out);
}

void Augment::write_values(const Image& image, float* out) const {
  const std::uint8_t* pixels = image.pixels.data();
  const std::int64_t plane = shape_[1] * shape_[2];
  for (std::size_t c = 0; c < mean_.size(); ++c, pixels += plane, out += plane) {
    const float mean = mean_[c], scale = scale_[c];
    for (std::int64_t i = 0; i < plane; ++i) out[i] = (static_cast<float>(pixels[i]) - mean) * scale;
  }
}

float Augment::bytes_a_unit(std::int64_t channel) const {
  return 1 / scale_[static_cast<std::size_t>(channel)];
}

float Augment::byte_of_zero(std::int64_t channel) const {
  return mean_[static_cast<std::size_t>(channel)];
}

Image Augment::picture(const float* values) const {
  Image image{static_cast<int>(shape_[0]), static_cast<int>(shape_[1]), static_cast<int>(shape_[2]), {}};
  const std::int64_t plane = shape_[1] * shape_[2];
  for (std::size_t c = 0; c < mean_.size(); ++c)
    for (std::int64_t i = 0; i < plane; ++i)
      image.pixels.push_back(
          static_cast<std::uint8_t>(std::lround(std::clamp(*values++ / scale_[c] + mean_[c], 0.0f, 255.0f))));
  return image;
}

void Augment::expect_shape(const Image& image) const {
  const auto text = [](auto channels, auto height, auto width) { return join(channels, "x", height, "x", width); };
  if (image.channels != shape_[0] && image.channels == shape_[2])
    throw Error(ErrorKind::config, join("the image has ", image.channels, " channels, the model's input has ",
                                        shape_[0], "; `input` is [channels, height, width]: write `input: [",
                                        image.channels, ", ", shape_[0], ", ", shape_[1], "]`", where()));
  if (image.channels != shape_[0])
    throw Error(
        ErrorKind::config,
        join("the image has ", image.channels, image.channels == 1 ? " channel" : " channels",
             ", the model's input has ", shape_[0], "; change the model's `input: [", image.channels,
             ", ...]`, or set `channels: ", shape_[0], "` where an image_folder or image_list is read", where()));
  if (image.height == shape_[1] && image.width == shape_[2]) return;
  const std::string size =
      shape_[1] == shape_[2] ? std::to_string(shape_[1]) : join("[", shape_[1], ", ", shape_[2], "]");
  throw Error(ErrorKind::config, join("the image is ", text(image.channels, image.height, image.width),
                                      steps_.empty() ? "" : " after its steps", ", the model's input is ",
                                      text(shape_[0], shape_[1], shape_[2]), "; add `resize: [", shape_[1], ", ",
                                      shape_[2], "]` or `center_crop: ", size, "` to data.", key_, where()));
}

// Returns " (models/digits.yaml:20:3)", or an empty string if the config is not from a file.
std::string Augment::where() const {
  const std::string place = to_string(place_);
  return place.empty() ? "" : " (" + place + ")";
}

std::string Augment::describe() const {
  std::vector<std::string> names;
  for (const Step& step : steps_) names.push_back(step.name);
  if (!normalization_.empty()) names.push_back("normalize " + normalization_);
  return names.empty() ? "none" : join_names(names);
}

}  // namespace twiddle
