#include "apps/bench/bench.h"
#include "apps/command_line/command_line.h"
#include "framework/cpu/thread_settings.h"

using namespace twiddle;

int main(int argc, char** argv) {
  apply_thread_settings(argv);
  return run_command_line({"twiddle-bench", "Measures convolutions and transforms as papers did.",
                           "'twiddle-bench NAME --help' lists the options of a benchmark.", bench_verbs()},
                          argc, argv);
}
