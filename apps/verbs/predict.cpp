#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "apps/command_line/console.h"
#include "apps/command_line/verb_options.h"
#include "apps/verbs/open.h"
#include "apps/verbs/verbs.h"
#include "data/augmentation/augment.h"
#include "data/formats/find_images.h"
#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/sequential.h"
#include "layers/softmax_loss.h"
#include "models/checkpoints/weights.h"
#include "models/evaluation/evaluate.h"
#include "models/loss.h"
#include "models/training/open_data.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Returns the images of a command line and the number of files skipped in its folders. A folder is replaced by its
// images in the order of their names.
FoundImages expand(const std::vector<std::string>& given) {
  FoundImages all;
  for (const std::string& path : given) {
    if (!fs::exists(path)) throw Error(ErrorKind::data, "there is no '" + printable(path) + "'");
    if (!fs::is_directory(path)) {
      all.files.push_back(path);
      continue;
    }
    const FoundImages found = find_images(path);
    if (found.files.empty())
      throw Error(ErrorKind::data, "'" + printable(path) + "' holds no .jpg, .jpeg or .png file");
    for (const std::string& file : found.files) all.files.push_back((fs::path(path) / file).string());
    all.add_counts(found);
  }
  return all;
}

bool has_eval_augment(const ConfigNode& tree) {
  const ConfigNode* const data = tree.find("data");
  return data != nullptr && data->find("eval_augment") != nullptr;
}

// A trained network that predicts classes or images.
class Predictor {
 public:
  explicit Predictor(Trained trained)
      : experiment_(std::move(trained.experiment)),
        input_(experiment_.config.input),
        ctx_(experiment_.device, experiment_.config.seed),
        has_steps_(has_eval_augment(experiment_.config.tree)) {
    const WeightsInfo weights = load_weights(trained.weights, ctx_, *experiment_.model.net);
    classes_ = network_classes(experiment_, trained.weights, weights).names;
    ctx_.training = false;
    ctx_.tape.set_recording(false);
  }

  TargetKind target() const { return experiment_.loss->target(); }

  // Returns one probability per class: softmax over all classes, or a sigmoid per class if a picture may have several.
  std::vector<float> probabilities(const std::string& file) {
    const Tensor scores = output(file);
    const bool one = target() == TargetKind::label;
    std::vector<float> shares = values_of(one ? softmax(*ctx_.stream, scores) : scores, file);
    if (!one)
      for (float& share : shares) share = 1 / (1 + std::exp(-share));
    return shares;
  }

  // Returns the network's output image.
  Image image(const std::string& file) {
    return experiment_.data.val_augment->picture(values_of(output(file), file).data());
  }

  // Reported once, because training and eval reject such pictures.
  std::string note_on_sizes() const {
    if (resized_ == 0) return {};
    return fmt::format(
        "{} {} not {}x{} and {} resized to it, whatever the sides' ratio: the config has no eval_augment",
        format_count(resized_), resized_ == 1 ? "picture was" : "pictures were", input_.at(1), input_.at(2),
        resized_ == 1 ? "was" : "were");
  }

  std::string class_name(std::size_t label) const {
    return label < classes_.size() ? classes_[label] : "output " + std::to_string(label);
  }

 private:
  Tensor output(const std::string& file) {
    const Config::Data& data = experiment_.config.data;
    Image image = read_image(file, static_cast<int>(input_.at(0)), data.max_pixels, data.orient);
    // Without eval_augment, resize to the network's input size.
    const auto height = static_cast<int>(input_.at(1)), width = static_cast<int>(input_.at(2));
    if (!has_steps_ && (image.height != height || image.width != width)) {
      image = resized(image, height, width);
      ++resized_;
    }
    std::vector<float> pixels(static_cast<std::size_t>(count_of(input_)));
    (*experiment_.data.val_augment)(image, RandomSequence{}, pixels.data());
    const Shape shape = with_batch(1, input_);
    return experiment_.model.net->forward(ctx_, Variable(Tensor::from(*ctx_.stream, shape, pixels))).value();
  }

  std::vector<float> values_of(const Tensor& output, const std::string& file) {
    std::vector<float> values = output.to_vector(*ctx_.stream);
    if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
      throw Error(ErrorKind::diverged, printable(file) + ": the network's outputs are nan or infinite");
    return values;
  }

  Experiment experiment_;
  Shape input_;
  std::int64_t resized_ = 0;
  Context ctx_;
  bool has_steps_;
  std::vector<std::string> classes_;
};

void print_notes(const Flags& flags, const std::string& on_sizes, const std::string& on_folders) {
  if (flags.verbosity < 0) return;
  for (const std::string& note : {on_sizes, on_folders})
    if (!note.empty()) write_stderr(fmt::format("note: {}\n", note));
}

struct PredictArguments {
  std::string path, model_file, images = "predictions";
  std::vector<std::string> pictures;
  double threshold = 0.5;
};

// Returns the classes in order of falling probability: the first five, or all above the threshold for multi-label
// networks.
nlohmann::json name_picture(Predictor& predictor, const std::string& file, double threshold, std::string& line) {
  const std::vector<float> probabilities = predictor.probabilities(file);
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return probabilities[a] > probabilities[b]; });
  if (predictor.target() == TargetKind::label)
    order.resize(std::min<std::size_t>(order.size(), 5));
  else
    std::erase_if(order, [&](std::size_t label) { return probabilities[label] < threshold; });
  nlohmann::json classes = nlohmann::json::array();
  for (const std::size_t label : order) {
    classes.push_back({{"class", predictor.class_name(label)}, {"probability", probabilities[label]}});
    line += fmt::format("  {} {:.1f}%", predictor.class_name(label), 100 * probabilities[label]);
  }
  if (order.empty()) line += fmt::format("  nothing from {:.0f}% on", 100 * threshold);
  return {{"file", file}, {predictor.target() == TargetKind::label ? "top" : "labels", classes}};
}

// Writes output images to a folder, each under its picture's name if that is not used yet.
class ImageWriter {
 public:
  ImageWriter(const std::string& folder, const std::vector<std::string>& pictures) : folder_(folder) {
    fs::create_directories(folder_);
    for (const std::string& picture : pictures) pictures_.insert(fs::weakly_canonical(picture));
  }

  std::string write(const std::string& picture, const Image& image) {
    std::string name = fs::path(picture).stem().string();
    while (!taken_.insert(name).second) name += "_";
    const std::string path = (folder_ / (name + ".png")).string();
    if (pictures_.count(fs::weakly_canonical(path)) > 0)  // an input that was read or will be
      throw Error(ErrorKind::config, "--images: '" + printable(path) + "' is read here; name another folder");
    const std::vector<std::uint8_t> png = encode_png(image);
    write_file_atomically(path, std::string(png.begin(), png.end()));
    return path;
  }

 private:
  fs::path folder_;
  std::set<std::string> taken_;
  std::set<fs::path> pictures_;
};

int predict(const Flags& flags, const PredictArguments& arguments) {
  const FoundImages pictures = expand(arguments.pictures);
  refuse_to_overwrite("--json", flags.json, pictures.files);
  Predictor predictor(open_trained(arguments.path, arguments.model_file, flags, {}));
  const bool makes_images = is_image(predictor.target());
  std::optional<ImageWriter> images;
  if (makes_images) images.emplace(arguments.images, pictures.files);
  nlohmann::json results = nlohmann::json::array();
  for (const std::string& file : pictures.files) {
    std::string line;
    if (makes_images) {
      const std::string made = images->write(file, predictor.image(file));
      results.push_back({{"file", file}, {"image", made}});
      line = "  " + printable(made);
    } else {
      results.push_back(name_picture(predictor, file, arguments.threshold, line));
    }
    if (flags.json != "-") fmt::print("{}: {}\n", printable(file), line);
  }
  write_json(flags, results);
  print_notes(flags, predictor.note_on_sizes(), pictures.notes());
  return 0;
}

}  // namespace

Action add_predict(VerbOptions& verb, const Flags& flags) {
  const auto arguments = std::make_shared<PredictArguments>();
  verb.add_option("RUN", arguments->path, "A run folder, a checkpoint folder or a weights file", {.required = true});
  verb.add_option("PICTURE", arguments->pictures, "PNG or JPEG files, or folders of them", {.required = true});
  verb.add_option("--model", arguments->model_file, "The YAML file, for weights outside of a run folder",
                  {.value = "CONFIG"});
  verb.add_option("--threshold", arguments->threshold,
                  "With several labels, print those of at least this probability (0.5)",
                  {.value = "P", .check = number_between(0, 1)});
  verb.add_option("--images", arguments->images, "The folder for images that a network outputs (predictions)",
                  {.value = "FOLDER"});
  return [&flags, arguments] { return predict(flags, *arguments); };
}

}  // namespace twiddle
