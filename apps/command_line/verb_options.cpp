#include "apps/command_line/verb_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace twiddle {

Validator whole_number_between(long long least, long long most) {
  return [=](const std::string& text) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    const bool ok = !text.empty() && *end == '\0' && errno == 0 && value >= least && value <= most;
    return ok ? std::string() : fmt::format("a whole number from {} to {} is needed, found '{}'", least, most, text);
  };
}

Validator number_between(double least, double most) {
  return [=](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool ok = !text.empty() && *end == '\0' && value >= least && value <= most;
    return ok ? std::string() : fmt::format("a number from {} to {} is needed, found '{}'", least, most, text);
  };
}

template <class T>
void VerbOptions::add_option(const std::string& names, T& value, const std::string& help, const OptionRules& rules) {
  CLI::Option& option = *app_->add_option(names, value, help)->required(rules.required);
  if (!rules.value.empty()) option.type_name(rules.value);
  if (rules.check) option.check(rules.check);
  if (rules.separated) option.delimiter(',');
  if (!rules.excludes.empty()) option.excludes(app_->get_option(rules.excludes));
}

void VerbOptions::add_flag(const std::string& names, bool& value, const std::string& help) {
  app_->add_flag(names, value, help);
}

void add_gpus_option(VerbOptions& verb, int& gpus) {
  verb.add_option("--gpus", gpus, "Start N processes on this machine, one per GPU; they split each batch",
                  {.value = "N", .check = whole_number_between(1, 1024)});
}

template void VerbOptions::add_option(const std::string&, std::string&, const std::string&, const OptionRules&);
template void VerbOptions::add_option(const std::string&, std::vector<std::string>&, const std::string&,
                                      const OptionRules&);
template void VerbOptions::add_option(const std::string&, int&, const std::string&, const OptionRules&);
template void VerbOptions::add_option(const std::string&, std::int64_t&, const std::string&, const OptionRules&);
template void VerbOptions::add_option(const std::string&, std::uint64_t&, const std::string&, const OptionRules&);
template void VerbOptions::add_option(const std::string&, double&, const std::string&, const OptionRules&);

}  // namespace twiddle
