#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/console.h"
#include "apps/open.h"
#include "apps/verb_options.h"
#include "apps/verbs.h"
#include "data/files.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/softmax_loss.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// The pictures that were named, and how many other files of the folders were passed over.
struct Pictures {
  std::vector<std::string> files;
  std::int64_t passed_over = 0;
};

// Folders stand for the pictures in them, in the order of their names.
Pictures expand(const std::vector<std::string>& given) {
  Pictures pictures;
  for (const std::string& path : given) {
    if (!fs::exists(path)) throw Error(ErrorKind::data, "there is no '" + printable(path) + "'");
    if (!fs::is_directory(path)) {
      pictures.files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      if (!entry.is_regular_file()) continue;
      const std::string file = entry.path().string();
      has_image_ending(file) ? inside.push_back(file) : void(++pictures.passed_over);
    }
    if (inside.empty()) throw Error(ErrorKind::data, "'" + printable(path) + "' holds no .png or .jpg");
    std::sort(inside.begin(), inside.end());
    pictures.files.insert(pictures.files.end(), inside.begin(), inside.end());
  }
  return pictures;
}

bool has_eval_augment(const ConfigNode& tree) {
  const ConfigNode* const data = tree.find("data");
  return data != nullptr && data->find("eval_augment") != nullptr;
}

// A trained network, ready to name pictures.
class Predictor {
 public:
  explicit Predictor(Trained trained)
      : experiment_(std::move(trained.experiment)),
        input_(experiment_.config.input),
        ctx_(experiment_.device, experiment_.config.seed),
        has_steps_(has_eval_augment(experiment_.config.tree)) {
    classes_ = load_weights(trained.weights, ctx_, *experiment_.model.net).classes;
    ctx_.training = false;
    ctx_.tape.set_recording(false);
  }

  std::vector<float> probabilities(const std::string& file) {
    Image image = read_image(file, static_cast<int>(input_.at(0)), experiment_.config.data.max_pixels);
    // Where the config has no steps for it, a picture is brought to the size that the network reads.
    const auto height = static_cast<int>(input_.at(1)), width = static_cast<int>(input_.at(2));
    if (!has_steps_ && (image.height != height || image.width != width)) {
      image = resized(image, height, width);
      ++resized_;
    }
    std::vector<float> pixels(static_cast<std::size_t>(count_of(input_)));
    (*experiment_.data.val_augment)(image, RandomSequence{}, pixels.data());
    Shape shape = input_;
    shape.insert(shape.begin(), 1);
    const Variable logits = experiment_.model.net->forward(ctx_, Variable(Tensor::from(*ctx_.stream, shape, pixels)));
    std::vector<float> shares = softmax(*ctx_.stream, logits.value()).to_vector(*ctx_.stream);
    if (!std::all_of(shares.begin(), shares.end(), [](float share) { return std::isfinite(share); }))
      throw Error(ErrorKind::diverged, file + ": the network's outputs are nan or infinite");
    return shares;
  }

  // Said once, for training and eval refuse such pictures.
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
  Experiment experiment_;
  Shape input_;
  std::int64_t resized_ = 0;
  Context ctx_;
  bool has_steps_;
  std::vector<std::string> classes_;
};

void tell_notes(const Flags& flags, const std::string& on_sizes, std::int64_t passed_over) {
  if (flags.verbosity < 0) return;
  if (!on_sizes.empty()) tell(fmt::format("note: {}\n", on_sizes));
  if (passed_over > 0)
    tell(fmt::format("note: {} {} no .png or .jpg and {} passed over\n", format_count(passed_over),
                     passed_over == 1 ? "file is" : "files are", passed_over == 1 ? "was" : "were"));
}

int predict(const Flags& flags, const std::string& path, const std::string& model_file,
            const std::vector<std::string>& given) {
  const Pictures pictures = expand(given);
  refuse_to_overwrite("--json", flags.json, pictures.files);
  Predictor predictor(open_trained(path, model_file, flags, OpenedData::none));
  nlohmann::json results = nlohmann::json::array();
  for (const std::string& file : pictures.files) {
    const std::vector<float> probabilities = predictor.probabilities(file);
    std::vector<std::size_t> order(probabilities.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return probabilities[a] > probabilities[b]; });
    order.resize(std::min<std::size_t>(order.size(), 5));
    nlohmann::json top = nlohmann::json::array();
    std::string line;
    for (const std::size_t label : order) {
      top.push_back({{"class", predictor.class_name(label)}, {"probability", probabilities[label]}});
      line += fmt::format("  {} {:.1f}%", predictor.class_name(label), 100 * probabilities[label]);
    }
    if (flags.json != "-") fmt::print("{}: {}\n", printable(file), line);
    results.push_back({{"file", file}, {"top", top}});
  }
  write_json(flags, results);
  tell_notes(flags, predictor.note_on_sizes(), pictures.passed_over);
  return 0;
}

}  // namespace

Action add_predict(VerbOptions& verb, const Flags& flags) {
  const auto path = std::make_shared<std::string>(), model_file = std::make_shared<std::string>();
  const auto images = std::make_shared<std::vector<std::string>>();
  verb.add_option("RUN", *path, "A run folder, a checkpoint folder or a weights file").required();
  verb.add_option("PICTURE", *images, "PNG or JPEG files, or folders of them").required();
  verb.add_option("--model", *model_file, "The YAML file, where the weights lie in no run folder").type_name("CONFIG");
  return [&flags, path, model_file, images] { return predict(flags, *path, *model_file, *images); };
}

}  // namespace twiddle
