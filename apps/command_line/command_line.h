#pragma once
#include <string>
#include <vector>

#include "apps/verbs/verbs.h"

namespace twiddle {

// A row of the program's table of verbs.
struct Verb {
  std::string name, help;
  AddVerb add;
  unsigned flags;  // groups of shared flags it takes, see flags.h
};

struct Program {
  std::string name, description, footer;  // the last two: the first and the last line of its help
  std::vector<Verb> verbs;
};

// Reads the command line, runs the verb and turns whatever is thrown into a message on standard error and an exit code:
// 0 ok, 1 failed, 2 usage or config, 3 data, 4 device or memory, 5 not a number, 130 interrupted.
int run_command_line(const Program& program, int argc, char** argv);

}  // namespace twiddle
