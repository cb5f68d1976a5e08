#pragma once
#include <string>

#include "apps/command_line/validators.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace twiddle {

// One option or argument of a verb. Each function changes it and returns it.
class VerbOption {
 public:
  explicit VerbOption(CLI::Option& option) : option_(&option) {}
  VerbOption& required();
  VerbOption& type_name(const std::string& name);  // what help calls its value
  VerbOption& delimiter(char between);             // of values that are given in one text: A,B
  VerbOption& check(const Validator& validator);
  VerbOption& excludes(const VerbOption& other);

 private:
  CLI::Option* option_;
};

// What a verb declares its options and arguments with. CLI11 stays behind it, in three files: its headers alone take
// six seconds of compiling a file.
class VerbOptions {
 public:
  explicit VerbOptions(CLI::App& app) : app_(&app) {}

  // A name without dashes is an argument: "CONFIG". The value is written when the command line is read; T is
  // std::string, std::vector<std::string>, int, std::int64_t, std::uint64_t or double.
  template <class T>
  VerbOption add_option(const std::string& names, T& value, const std::string& help = "");
  VerbOption add_flag(const std::string& names, bool& value, const std::string& help);
  void explain(const std::string& text);  // stands below the options in the verb's help

 private:
  CLI::App* app_;
};

// --gpus N, of the verbs that run on several: apps/ranks/rank_processes.h starts them.
void add_gpus_option(VerbOptions& verb, int& gpus);

}  // namespace twiddle
