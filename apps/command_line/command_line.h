#pragma once
#include <string>
#include <vector>

#include "apps/verbs/verbs.h"

namespace twiddle {

// One row of the program's table of verbs.
struct Verb {
  std::string name, help;
  AddVerb add;
  unsigned flags;  // sum of the groups of shared flags that it accepts, see flags.h
};

struct Program {
  std::string name, description, footer;  // description and footer: the first and last line of its help
  std::vector<Verb> verbs;
};

// Reads the command line and runs the verb. Turns any exception into a message on standard error and an exit code: 0
// ok, 1 failed, 2 usage or config, 3 data, 4 device or memory, 5 not a number, 130 interrupted.
int run_command_line(const Program& program, int argc, char** argv);

}  // namespace twiddle
