#include "apps/command_line/verb_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <vector>

namespace twiddle {

VerbOption& VerbOption::required() {
  option_->required();
  return *this;
}

VerbOption& VerbOption::type_name(const std::string& name) {
  option_->type_name(name);
  return *this;
}

VerbOption& VerbOption::delimiter(char between) {
  option_->delimiter(between);
  return *this;
}

VerbOption& VerbOption::check(const Validator& validator) {
  option_->check(validator);
  return *this;
}

VerbOption& VerbOption::excludes(const VerbOption& other) {
  option_->excludes(other.option_);
  return *this;
}

template <class T>
VerbOption VerbOptions::add_option(const std::string& names, T& value, const std::string& help) {
  return VerbOption(*app_->add_option(names, value, help));
}

VerbOption VerbOptions::add_flag(const std::string& names, bool& value, const std::string& help) {
  return VerbOption(*app_->add_flag(names, value, help));
}

void VerbOptions::explain(const std::string& text) {
  app_->footer(text);
}

void add_gpus_option(VerbOptions& verb, int& gpus) {
  verb.add_option("--gpus", gpus, "Start so many processes on this machine, one a GPU, which share each batch")
      .type_name("N")
      .check(whole_number_between(1, 1024));
}

template VerbOption VerbOptions::add_option(const std::string&, std::string&, const std::string&);
template VerbOption VerbOptions::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template VerbOption VerbOptions::add_option(const std::string&, int&, const std::string&);
template VerbOption VerbOptions::add_option(const std::string&, std::int64_t&, const std::string&);
template VerbOption VerbOptions::add_option(const std::string&, std::uint64_t&, const std::string&);
template VerbOption VerbOptions::add_option(const std::string&, double&, const std::string&);

}  // namespace twiddle
