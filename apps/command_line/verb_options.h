#pragma once
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace twiddle {

// Checks the value of an option; CLI11 calls it. Returns the error message, or an empty string. These reject values
// that CLI11 would parse in part, such as "10 minutes".
using Validator = std::function<std::string(const std::string&)>;
Validator whole_number_between(long long least, long long most);
Validator number_between(double least, double most);

// Optional properties of an option or argument.
struct OptionRules {
  std::string value = {};  // name of the value in the help
  Validator check = {};    // applied to each value
  bool required = false;
  bool separated = false;     // several values in one comma-separated string: A,B
  std::string excludes = {};  // an option or argument that excludes this one
};

// Declares a verb's options and arguments. It hides CLI11, whose headers take six seconds per file to compile: only
// three files include them.
class VerbOptions {
 public:
  explicit VerbOptions(CLI::App& app) : app_(&app) {}

  // A name without dashes is an argument: "CONFIG". The value is written when the command line is parsed. T is
  // std::string, int, std::int64_t, std::uint64_t, double, or a vector of strings.
  template <class T>
  void add_option(const std::string& names, T& value, const std::string& help, const OptionRules& rules = {});
  void add_flag(const std::string& names, bool& value, const std::string& help);

 private:
  CLI::App* app_;
};

// Declares --gpus N for the verbs that run on several GPUs; apps/ranks/rank_processes.h starts the processes.
void add_gpus_option(VerbOptions& verb, int& gpus);

}  // namespace twiddle
