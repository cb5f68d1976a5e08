#pragma once
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace twiddle {

// Checks an option's text, as CLI11 calls it: returns the error, or nothing. These refuse what CLI11 would read
// halfway, such as "10 minutes".
using Validator = std::function<std::string(const std::string&)>;
Validator whole_number_between(long long least, long long most);
Validator number_between(double least, double most);

// What else there is to say of an option or argument.
struct OptionRules {
  std::string value = {};  // what help calls its value
  Validator check = {};    // of each value
  bool required = false;
  bool separated = false;     // several values are given in one text: A,B
  std::string excludes = {};  // an option or argument that cannot be given as well
};

// What a verb declares its options and arguments with. CLI11 stays behind it, in three files: its headers alone take
// six seconds of compiling a file.
class VerbOptions {
 public:
  explicit VerbOptions(CLI::App& app) : app_(&app) {}

  // A name without dashes is an argument: "CONFIG". The value is written when the command line is read; T is
  // std::string, int, std::int64_t, std::uint64_t, double, or a vector of strings.
  template <class T>
  void add_option(const std::string& names, T& value, const std::string& help, const OptionRules& rules = {});
  void add_flag(const std::string& names, bool& value, const std::string& help);

 private:
  CLI::App* app_;
};

// --gpus N, of the verbs that run on several: apps/ranks/rank_processes.h starts them.
void add_gpus_option(VerbOptions& verb, int& gpus);

}  // namespace twiddle
