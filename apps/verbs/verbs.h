#pragma once
#include <functional>
#include <string>
#include <vector>

#include "models/config/config.h"

namespace twiddle {

class VerbOptions;

// What the flags that several verbs share came to.
struct Flags {
  std::vector<Override> overrides;  // `--set key=value` and the flags that stand for a key, in the order given
  std::string json;                 // --json FILE; empty: none
  int verbosity = 0;                // -q: -1, -v: 1
  std::string program = "twiddle";  // as it was called: "./twiddle"
  std::string command;              // the whole command line, as a shell would read it
  std::string own;                  // the flags of the verb alone, a line each; values, but for names of files

  std::string value(const std::string& key, const std::string& fallback = {}) const;  // the last override of `device`
};

// What a verb does once the command line is read. It returns the program's exit code; an Error's kind is one, too.
using Action = std::function<int()>;

// A verb is one file with one such function: it declares the verb's own options and arguments and returns what to run.
// Shared flags need no declaration: main.cpp lists each verb with the groups of flags it takes.
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
