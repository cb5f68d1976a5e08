#include "apps/command_line/use_threads.h"

#include <fmt/core.h>
#include <omp.h>

#include <latch>
#include <thread>
#include <vector>

#include "framework/error.h"

namespace twiddle {
namespace {

void prove_threads(int count) {
  std::vector<std::thread> threads;
  std::latch all_there(1);
  const auto end_them = [&] {
    all_there.count_down();
    for (std::thread& thread : threads) thread.join();
  };
  try {
    while (static_cast<int>(threads.size()) + 1 < count) threads.emplace_back([&] { all_there.wait(); });
  } catch (const std::exception& error) {
    end_them();
    throw Error(ErrorKind::device, fmt::format("cannot start {} threads for computing, only {}: {}; take fewer: "
                                               "threads, or --threads",
                                               count, threads.size() + 1, error.what()));
  }
  end_them();
}

}  // namespace

void use_threads(int count) {
  if (count > 0) omp_set_num_threads(count);
  prove_threads(omp_get_max_threads());
}

}  // namespace twiddle
