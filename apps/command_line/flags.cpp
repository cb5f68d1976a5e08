#include "apps/command_line/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string_view>

#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {
namespace {

// A flag that several verbs share. A flag with a key is short for `--set key=value`. Names and paths are used literally
// and not parsed as YAML.
struct SharedFlag {
  unsigned group;
  const char* names;
  const char* key;
  const char* value;
  const char* help;
  bool is_text = false;
};

constexpr const char* shared_group = "Shared options";

constexpr SharedFlag shared_flags[] = {
    {config_flags, "--set", "", "KEY=VALUE", "Change any key of the YAML file: --set train.epochs=3"},
    {device_flags, "--device", "device", "NAME", "auto, cpu, cuda or cuda:N", true},
    {device_flags, "--threads", "threads", "N", "Threads for computing on the CPU; 0: all cores"},
    {config_flags, "--seed", "seed", "N", "Seed of weights, order and augmentation"},
    {config_flags, "--engine", "convolution.engine", "NAME", "Convolutions: rule, measured, ENGINE or ENGINE:PLAN",
     true},
    {config_flags, "--precision", "precision", "CLASS", "fp32, tf32, bf16 or fp16", true},
    {config_flags, "--batch-size,--batch", "train.batch_size", "N", "Images in a batch"},
    {data_flags, "--workers", "data.workers", "N", "Threads that read and augment images"},
    {train_flags, "--epochs", "train.epochs", "N", "Passes over the training images"},
    {train_flags, "--lr", "train.learning_rate", "RATE", "Base learning rate"},
    {train_flags, "--out", "train.out", "DIR", "Folder in which run folders are made", true},
    {json_flag, "--json", "", "FILE", "Write the results as JSON, too"},
};

const SharedFlag* find_flag(const CLI::Option& option) {
  const std::string names = option.get_name(false, true);  // "--batch-size,--batch", as declared
  for (const SharedFlag& flag : shared_flags)
    if (names == flag.names) return &flag;
  return nullptr;
}

// Returns the first long name: "--batch-size" of "--batch-size,--batch".
std::string long_name(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}

Override parse_set(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Error(ErrorKind::config, "--set needs key=value, such as --set train.epochs=3; found '" + shown(text) + "'");
  return {text.substr(0, equals), text.substr(equals + 1), "--set"};
}

}  // namespace

std::string Flags::value(const std::string& key, const std::string& fallback) const {
  for (auto given = overrides.rbegin(); given != overrides.rend(); ++given)
    if (given->key == key) return given->value;
  return fallback;
}

void declare_flags(CLI::App& app, unsigned groups) {
  const auto keep_results = [](const CLI::results_t&) { return true; };
  for (const SharedFlag& flag : shared_flags) {
    if ((flag.group & groups) == 0) continue;
    app.add_option(flag.names, CLI::callback_t(keep_results), flag.help)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name(flag.value)
        ->group(shared_group);
  }
  const auto ignore_count = [](std::int64_t) {};
  app.add_flag_function("-q,--quiet", ignore_count, "No header and no progress")->group(shared_group);
  app.add_flag_function("-v,--verbose", ignore_count, "Print more")->group(shared_group);
}

void collect_flags(const CLI::App& app, unsigned groups, const std::string& verb, Flags& flags) {
  std::map<const CLI::Option*, std::size_t> seen;
  for (const CLI::Option* option : app.parse_order()) {
    if (option->get_group() != shared_group) continue;  // a verb's own flag may have the same name
    if (option->check_name("--quiet")) flags.verbosity = -1;
    if (option->check_name("--verbose")) flags.verbosity = 1;
    const SharedFlag* flag = option->get_positional() ? nullptr : find_flag(*option);
    if (flag == nullptr) continue;
    const std::string name = long_name(*option);
    if ((flag->group & groups) == 0) {
      const std::string program = (app.get_parent() == nullptr ? app : *app.get_parent()).get_name();
      throw Error(ErrorKind::config, "'" + verb + "' does not take " + name + "; '" + program + " " + verb +
                                         " --help' lists what it takes");
    }
    const std::string& value = option->results().at(seen[option]++);
    if (flag->group == json_flag)
      flags.json = value;
    else if (std::string(flag->key).empty())
      flags.overrides.push_back(parse_set(value));
    else
      flags.overrides.push_back({flag->key, value, name, flag->is_text});
  }
}

std::string own_flags(const CLI::App& verb) {
  std::string text;
  for (const CLI::Option* option : verb.get_options()) {
    const std::string type = option->get_type_name();
    if (option->get_group() == shared_group || option->get_positional() || option->get_lnames().empty()) continue;
    if (type == "FILE" || option == verb.get_help_ptr()) continue;
    text += long_name(*option);
    if (option->count() == 0)
      text += " not given";
    else if (type != "RUN")
      for (const std::string& value : option->results()) text += ' ' + value;
    text += '\n';
  }
  return text;
}

std::string shell_word(const std::string& text) {
  const std::string_view plain = "_-./:=,+@%0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const auto is_plain = [plain](char letter) { return (letter & 0x80) != 0 || plain.find(letter) != plain.npos; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace twiddle
