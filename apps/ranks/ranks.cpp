#include "apps/ranks/ranks.h"

#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string_view>
#include <thread>

#include "apps/command_line/console.h"
#include "apps/failure.h"
#include "apps/version.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "framework/ranks/launch.h"
#include "framework/ranks/pack.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Time that a failed rank waits for the other ranks to fail as well before it stops them.
constexpr double seconds_for_others = 3;

std::string_view without_indent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

// Returns both lines from shortly before their first difference, because a message truncates long lines.
std::pair<std::string, std::string> shown_around_difference(std::string_view a, std::string_view b) {
  // equal characters: shown before the difference, and at most without truncation
  constexpr std::ptrdiff_t kept = 20, most = 40;
  const std::ptrdiff_t alike = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  if (alike <= most) return {shown(a), shown(b)};
  auto from = static_cast<std::size_t>(alike - kept);
  while (from < static_cast<std::size_t>(alike) && (a[from] & 0xC0) == 0x80) ++from;  // not inside a UTF-8 character
  return {"..." + shown(a.substr(from)), "..." + shown(b.substr(from))};
}

// Returns the first line that differs, from each string.
std::pair<std::string, std::string> first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_of_a(a), lines_of_b(b);
  for (std::string line_a, line_b;;) {
    const bool more_a = static_cast<bool>(std::getline(lines_of_a, line_a));
    const bool more_b = static_cast<bool>(std::getline(lines_of_b, line_b));
    if (!more_a) line_a = "nothing";
    if (!more_b) line_b = "nothing";
    if (line_a != line_b || (!more_a && !more_b))
      return shown_around_difference(without_indent(line_a), without_indent(line_b));
  }
}

int end_all(Communicator& ranks, const Failure& failure) {
  if (ranks.gather_last(failure.text, seconds_for_others)) {
    if (ranks.rank() == 0) print_failure(failure);
    return failure.code;
  }
  print_error(fmt::format("rank {} of {} on {}: {}\n  It ends all ranks.", ranks.rank(), ranks.size(), host_name(),
                          failure.text));
  ranks.abort(failure.code);
  return failure.code;
}

std::shared_ptr<Communicator> join_by_nccl(const Launch& launch) {
  if (launch.rendezvous.host.empty())
    throw Error(ErrorKind::config,
                fmt::format("{} has started {} ranks on several machines, and they have to know where rank 0 is: give "
                            "all of them MASTER_ADDR (mpirun -x MASTER_ADDR=HOST)",
                            launch.launcher, launch.size));
  std::shared_ptr<Communicator> ranks = make_nccl_ranks(launch);
  ranks->when_lost(lost_rank_reporter(*ranks, [] { return std::string(); }));
  return ranks;
}

std::shared_ptr<Communicator> join_by_mpi(const Launch& launch) {
  if (launch.launcher == "torchrun")
    throw Error(ErrorKind::device, fmt::format("torchrun has started {0} processes, which nothing joins on CPUs: "
                                               "start them by MPI, mpirun -n {0} twiddle train ...",
                                               launch.size));
  std::shared_ptr<Communicator> ranks =
      make_mpi_ranks([](const std::string& text) { write_stderr(fmt::format("warning: {}\n", text)); }, print_error);
  ranks->when_lost(lost_rank_reporter(*ranks, [] { return std::string(); }));
  if (ranks->size() != launch.size)
    throw Error(ErrorKind::device,
                fmt::format("{} has started {} processes, of which MPI joins {}: it belongs to another MPI than this "
                            "program was built with (with srun, --mpi=pmix or --mpi=pmi2 may help)",
                            launch.launcher, launch.size, ranks->size()));
  return ranks;
}

}  // namespace

std::shared_ptr<Communicator> join_ranks(const Flags& flags) {
  const Launch launch = own_launch();
  if (launch.size == 1) return make_one_rank();
  const bool on_gpus = flags.value("device", "auto") != "cpu" && cuda_device_count() > 0;
  return on_gpus ? join_by_nccl(launch) : join_by_mpi(launch);
}

std::optional<int> gpu_of_rank() {
  const Launch launch = own_launch();
  const int gpus = cuda_device_count();
  if (launch.size == 1 || gpus == 0) return std::nullopt;
  return gpus == 1 ? 0 : launch.local_rank;  // a launcher may expose only one GPU to each process
}

Communicator::WhenLost lost_rank_reporter(const Communicator& ranks, std::function<std::string()> last_checkpoint) {
  const int rank = ranks.rank();
  return [rank, last_checkpoint = std::move(last_checkpoint)](const std::string& who) {
    // All other ranks lose rank 0 at the same time and cannot see each other's messages. Each therefore waits in
    // proportion to its rank. After the first has reported and exited, the launcher stops the rest.
    constexpr double a_turn = 0.1, longest = 3;
    if (who.find("rank 0 ") != std::string::npos)
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(a_turn * (rank - 1), longest)));
    const std::string saved = last_checkpoint();
    print_error(fmt::format("{}; stopping all ranks{}", who, saved.empty() ? "" : "\n  last checkpoint: " + saved));
  };
}

int run_on_ranks(Communicator& ranks, const Flags& flags, const std::function<int()>& work) {
  if (ranks.size() == 1) return work();
  try {
    // This check comes first: ranks that run different verbs would call different collectives, and MPI writes past the
    // buffer if it receives more than expected.
    expect_alike(ranks, {{"program", join(version(), " ", commit(), " ", compiler()), "give all hosts the same one"}});
    expect_alike(ranks, {{"command", flags.own, "start all with the same flags"}});
    const int code = work();
    ranks.barrier();
    return code;
  } catch (...) {
    return end_all(ranks, failure_of(std::current_exception()));
  }
}

void expect_alike(Communicator& ranks, const std::vector<SharedFact>& facts) {
  if (ranks.size() == 1) return;
  std::vector<std::string> own;
  for (const SharedFact& fact : facts) own.push_back(fact.text);
  const std::vector<std::string> all = ranks.gather(pack(own)), hosts = ranks.gather(host_name());
  const auto wanted = unpack<std::vector<std::string>>(all.front());
  std::string differences;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto found = unpack<std::vector<std::string>>(all[rank]);
    for (std::size_t i = 0; i < facts.size(); ++i) {
      if (found[i] == wanted[i]) continue;
      const auto [there, here] = first_difference(found[i], wanted[i]);
      differences += fmt::format("\n  rank {} on {} has another {}: '{}', on rank 0 '{}'; {}", rank, hosts[rank],
                                 facts[i].what, there, here, facts[i].advice);
    }
  }
  if (!differences.empty()) throw Error(ErrorKind::config, "the ranks cannot train together:" + differences);
}

void expect_same_config(Communicator& ranks, const Config& config) {
  expect_alike(ranks, {{"config", to_yaml(config.tree), "start all with the same file and flags"}});
}

std::string hosts_of(Communicator& ranks) {
  std::map<std::string, int> places;
  for (const std::string& place :
       ranks.gather(fmt::format("on {} with {}", host_name(), format_count(omp_get_max_threads(), "thread"))))
    ++places[place];
  std::string text;
  for (const auto& [place, count] : places)
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, place, count > 1 ? " each" : "");
  return text;
}

}  // namespace twiddle
