#pragma once
#include <string>
#include <vector>

#include "apps/verbs/verbs.h"

namespace CLI {
class App;
}

namespace twiddle {

// Groups of shared flags; a verb declares the sum of the groups that apply to it.
enum FlagGroup : unsigned {
  device_flags = 1,  // --device --threads
  config_flags = 2,  // --set --seed --engine --precision --batch-size
  data_flags = 4,    // --workers
  train_flags = 8,   // --epochs --lr --out
  json_flag = 16,    // --json
};

// Declares the flags of these groups, -q and -v on the program or on one verb.
void declare_flags(CLI::App& app, unsigned groups);

// Appends the flags given to the app to `flags`, in the order typed. Throws a config error for a flag outside `groups`.
void collect_flags(const CLI::App& app, unsigned groups, const std::string& verb, Flags& flags);

// Returns the flags that only this verb has, given or not, one per line: "--limit-batches 3". A flag that names a run
// shows only whether it was given. Flags that name other files are omitted, because paths may differ between hosts.
std::string own_flags(const CLI::App& verb);

// Returns the text as one word of a shell command, quoted if necessary.
std::string shell_word(const std::string& text);

// Returns all names of an app's options: "--epochs".
std::vector<std::string> flag_names(const CLI::App& app);

}  // namespace twiddle
