#pragma once
#include <string>
#include <vector>

#include "apps/verbs/verbs.h"

namespace CLI {
class App;
}

namespace twiddle {

// Groups of shared flags; a verb takes the sum of those that mean something to it.
enum FlagGroup : unsigned {
  device_flags = 1,  // --device --threads
  config_flags = 2,  // --set --seed --engine --precision --batch-size
  data_flags = 4,    // --workers
  train_flags = 8,   // --epochs --lr --out
  json_flag = 16,    // --json
};

// Declares the flags of these groups, -q and -v on the program or on one verb.
void declare_flags(CLI::App& app, unsigned groups);

// Adds to `flags` what was given to the app, in the order typed. Throws a config error for a flag outside `groups`.
void collect_flags(const CLI::App& app, unsigned groups, const std::string& verb, Flags& flags);

// The flags that a verb alone has, given or not, a line each: "--limit-batches 3". Of one that names a run whether it
// was given, and none that names another file: these may be at another place on each host.
std::string own_flags(const CLI::App& verb);

// The text as one word of a shell's command line: in quotes where it needs them.
std::string shell_word(const std::string& text);

// All names by which an app's options can be called: "--epochs".
std::vector<std::string> flag_names(const CLI::App& app);

}  // namespace twiddle
