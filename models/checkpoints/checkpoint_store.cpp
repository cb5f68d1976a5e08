#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "framework/error.h"
#include "framework/optimizers/optimizer.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "layers/sequential.h"
#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/weights.h"
#include "models/training/weight_average.h"

namespace twiddle {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-", abandoned_prefix = "abandoned-step-", stale_prefix = ".tmp-";

// Returns the step in a folder's name; nullopt if it is not a checkpoint's.
std::optional<std::int64_t> step_of(const std::string& name, std::string_view prefix = step_prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string digits = name.substr(prefix.size());
  const bool all_digits = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!all_digits || digits.size() < 8 || digits.size() > 18) return std::nullopt;
  return std::stoll(digits);
}

std::string name_of(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return join(step_prefix, digits);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

// Names of checkpoints in a folder, oldest first.
std::vector<std::string> checkpoints_in(const std::string& folder, std::string_view prefix = step_prefix) {
  std::vector<std::string> names = names_in(folder);
  std::erase_if(names, [&](const std::string& name) { return !step_of(name, prefix); });
  std::sort(names.begin(), names.end(),
            [&](const std::string& a, const std::string& b) { return *step_of(a, prefix) < *step_of(b, prefix); });
  return names;
}

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// It is first renamed to a name that is not a checkpoint's, so that a kill during the removal leaves nothing that looks
// intact.
void remove_checkpoint(const std::string& folder, const std::string& name) {
  const std::string doomed = join(folder, "/", stale_prefix, "remove-", name);
  remove_quietly(doomed);
  rename_durably(join(folder, "/", name), doomed);
  remove_quietly(doomed);
}

// Removes what a killed process left half written or half removed. No other process writes in a run folder.
void remove_leftovers(const std::string& folder) {
  for (const std::string& name : names_in(folder))
    if (name.starts_with(stale_prefix) || is_temporary_name(name)) remove_quietly(fs::path(folder) / name);
}

// Sets checkpoints aside whose steps are later than the one that a run was resumed from. An older one that was set
// aside for the same step is removed.
void abandon_later_steps(const std::string& folder, std::int64_t step, std::size_t keep) {
  for (const std::string& later : checkpoints_in(folder)) {
    if (*step_of(later) <= step) continue;
    const std::string abandoned = join(folder, "/abandoned-", later);
    remove_quietly(abandoned);
    rename_durably(join(folder, "/", later), abandoned);
  }
  const std::vector<std::string> abandoned = checkpoints_in(folder, abandoned_prefix);
  for (std::size_t i = 0; i < abandoned.size(); ++i)
    if (*step_of(abandoned[i], abandoned_prefix) <= step || i + keep < abandoned.size())
      remove_quietly(fs::path(folder) / abandoned[i]);
}

// What a file, or the files in a folder, take.
std::uint64_t bytes_of(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return fs::file_size(path, error);
  std::uint64_t bytes = 0;
  for (const std::string& name : names_in(path.string())) bytes += bytes_of(path / name);
  return bytes;
}

bool is_whole(const std::string& folder) {
  try {
    check_checkpoint(folder);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// A run folder may come from another person. Following such a link could remove another run's checkpoints.
void refuse_link(const std::string& path) {
  std::error_code ignored;
  if (fs::is_symlink(path, ignored))
    throw Error(ErrorKind::data, join("'", printable(path), "' is a link to another folder, from which a resumed run ",
                                      "would remove checkpoints; move that folder here in its place"));
}

void create_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error(join("cannot create folder '", path, "': ", error.message()));
}

}  // namespace

CheckpointStore::CheckpointStore(std::string run_folder, std::int64_t keep)
    : run_folder_(std::move(run_folder)),
      folder_(run_folder_ + "/checkpoints"),
      keep_(std::max<std::int64_t>(keep, 1)) {}

void CheckpointStore::prove_writable(const SavedBytes& bytes, std::int64_t saves) const {
  refuse_link(folder_);
  create_folder(folder_);
  remove_leftovers(folder_);
  remove_leftovers(run_folder_);
  const std::string probe = folder_ + "/probe";
  write_file_atomically(probe, std::string(4096, '\0'));
  remove_quietly(probe);
  struct statvfs space {};
  if (::statvfs(folder_.c_str(), &space) != 0) return;  // a file system that does not report it
  const std::uint64_t free_bytes = std::uint64_t(space.f_bavail) * space.f_frsize;
  const std::int64_t at_once = std::min(keep_, saves) + 1;
  const auto one = static_cast<double>(bytes.checkpoint);
  double there = static_cast<double>(bytes_of(run_folder_ + "/best.safetensors"));
  for (const std::string& folder : list()) there += static_cast<double>(bytes_of(folder));
  const double all = static_cast<double>(at_once) * one + static_cast<double>(bytes.weights);
  const double needed = std::min(std::max(all - there, one), 1e18);
  if (static_cast<double>(free_bytes) < needed)
    throw Error(join("'", folder_, "': ", at_once, " checkpoints of ", format_bytes(bytes.checkpoint),
                     " at once and the best weights need ", format_bytes(static_cast<std::uint64_t>(needed)),
                     " more, only ", format_bytes(free_bytes),
                     " are free. Free space, keep fewer (train.keep), or choose another folder with --out"));
}

std::string CheckpointStore::save(Context& ctx, const Sequential& net, const SavedOptimizer& optimizer,
                                  const RunState& state, const std::vector<std::string>& classes,
                                  WeightAverage* average) {
  create_folder(folder_);
  remove_leftovers(folder_);
  const std::string name = name_of(state.step), target = join(folder_, "/", name);
  const std::string temporary = join(folder_, "/", stale_prefix, name);
  create_folder(temporary);
  try {
    write_checkpoint(temporary, ctx, net, optimizer, state, classes, average);
    replace_folder(temporary, target);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }

  abandon_later_steps(folder_, state.step, static_cast<std::size_t>(keep_));
  const std::vector<std::string> kept = checkpoints_in(folder_);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < kept.size(); ++i) remove_checkpoint(folder_, kept[i]);
  return target;
}

void CheckpointStore::save_best(Context& ctx, const Sequential& net, const std::vector<std::string>& classes,
                                const RunState& state) const {
  create_folder(run_folder_);
  remove_leftovers(run_folder_);
  save_weights(run_folder_ + "/best.safetensors", ctx, net, classes,
               {{"epoch", std::to_string(state.best_epoch)},
                {"step", std::to_string(state.step)},
                {"metric", state.watched},
                {"score", format_number(state.best_score)}});
}

std::vector<std::string> CheckpointStore::list() const {
  std::vector<std::string> folders = checkpoints_in(folder_);
  for (std::string& name : folders) name = join(folder_, "/", name);
  return folders;
}

std::string newest_checkpoint(const std::string& path) {
  const fs::path given = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  if (is_file(path) && given.filename() == "state.safetensors") return newest_checkpoint(given.parent_path().string());
  if (is_file(path) && given.extension() != ".safetensors")
    throw Error(ErrorKind::config, join("--resume takes a run folder or checkpoint folder; '", path, "' is neither"));
  if (is_file(path))
    throw Error(ErrorKind::config, join("--resume takes a run folder or checkpoint folder; '", path,
                                        "' holds weights only. For fine-tuning use --weights."));
  if (!is_folder(path)) throw Error(ErrorKind::config, join("--resume: there is no folder '", path, "'"));

  // Steps of the folder that holds checkpoints up to the one that is meant, which comes last.
  const bool is_checkpoint = step_of(given.filename().string()).has_value();
  const fs::path folder = is_checkpoint ? given.parent_path() : given / "checkpoints";
  std::vector<std::string> names = checkpoints_in(folder.empty() ? "." : folder.string());
  if (is_checkpoint)
    std::erase_if(names, [&given](const auto& name) { return *step_of(name) > *step_of(given.filename()); });
  if (names.empty()) throw Error(ErrorKind::data, join("--resume: '", path, "' has no checkpoint in it"));
  const std::string meant = (folder / names.back()).string();
  names.pop_back();
  try {
    check_checkpoint(meant);
    return meant;
  } catch (const Error& error) {
    const auto whole = std::find_if(names.rbegin(), names.rend(),
                                    [&folder](const auto& name) { return is_whole((folder / name).string()); });
    if (whole == names.rend()) throw Error(ErrorKind::data, join(error.what(), "\n  no older checkpoint is intact"));
    const std::string other = (folder / *whole).string();
    throw Error(ErrorKind::data, join(error.what(), "\n  ", other, " is intact; to resume from it: --resume ", other));
  }
}

std::string find_weights(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    throw Error(ErrorKind::data, join("there is no weights file or run folder '", printable(path), "'"));
  if (!is_folder(path)) return path;  // the code that reads it rejects a pipe
  std::vector<std::string> candidates = {path + "/best.safetensors", path + "/model.safetensors"};
  const std::vector<std::string> names = checkpoints_in(path + "/checkpoints");
  if (!names.empty()) candidates.push_back(join(path, "/checkpoints/", names.back(), "/model.safetensors"));
  const auto found = std::find_if(candidates.begin(), candidates.end(), is_file);
  if (found == candidates.end())
    throw Error(ErrorKind::data, join("'", path, "' holds no weights: neither best.safetensors nor a checkpoint"));
  return *found;
}

}  // namespace twiddle
