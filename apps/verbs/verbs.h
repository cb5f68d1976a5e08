#pragma once
#include <functional>
#include <string>
#include <vector>

#include "models/config/config.h"

namespace twiddle {

class VerbOptions;

// The values of the flags that several verbs share.
struct Flags {
  std::vector<Override> overrides;  // `--set key=value` and the flags for a config key, in the order given
  std::string json;                 // --json FILE; empty: none
  int verbosity = 0;                // -q: -1, -v: 1
  std::string program = "twiddle";  // as typed: "./twiddle"
  std::string command;              // the whole command line, quoted for a shell
  std::string own;                  // the flags of this verb, one per line, with values other than file names

  // the last override of a key such as `device`
  std::string value(const std::string& key, const std::string& fallback = {}) const;
};

// Runs a verb after the command line is parsed. Returns the program's exit code; so does an Error's kind.
using Action = std::function<int()>;

// Each verb is one file with one such function. It declares the verb's own options and arguments and returns the
// action. Shared flags need no declaration: main.cpp lists each verb with its groups of flags.
using AddVerb = std::function<Action(VerbOptions& verb, const Flags& flags)>;

Action add_train(VerbOptions& verb, const Flags& flags);
Action add_eval(VerbOptions& verb, const Flags& flags);
Action add_predict(VerbOptions& verb, const Flags& flags);
Action add_merge(VerbOptions& verb, const Flags& flags);
Action add_time(VerbOptions& verb, const Flags& flags);
Action add_tune(VerbOptions& verb, const Flags& flags);
Action add_conv(VerbOptions& verb, const Flags& flags);
Action add_summary(VerbOptions& verb, const Flags& flags);
Action add_check(VerbOptions& verb, const Flags& flags);
Action add_devices(VerbOptions& verb, const Flags& flags);

}  // namespace twiddle
