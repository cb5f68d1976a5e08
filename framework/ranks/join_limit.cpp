#include "framework/ranks/join_limit.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "framework/error.h"

namespace twiddle {

namespace {

namespace fs = std::filesystem;

std::string text_of_file(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// As another process started. None: it is not to be read, or no rank.
std::optional<Launch> launch_of(const fs::path& process) try {
  std::istringstream environment(text_of_file(process / "environ"));
  std::vector<std::string> variables;
  for (std::string each; std::getline(environment, each, '\0');) variables.push_back(each);
  return read_launch([&](const std::string& name) -> const char* {
    for (const std::string& each : variables)
      if (each.starts_with(name + '=')) return each.c_str() + name.size() + 1;
    return nullptr;
  });
} catch (const Error&) {
  return std::nullopt;
}

// The state follows the name, which is in brackets and may have any character.
bool is_stopped(const fs::path& process) {
  const std::string stat = text_of_file(process / "stat");
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.substr(name_end + 1, 2) == " T";
}

bool is_process(const fs::path& entry) {
  const std::string name = entry.filename().string();
  return std::all_of(name.begin(), name.end(), [](char letter) { return letter >= '0' && letter <= '9'; });
}

}  // namespace

std::string stopped_ranks_here(const Launch& launch) {
  std::string text;
  if (launch.token.empty()) return text;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", none)) {
    if (!is_process(entry.path()) || !is_stopped(entry.path())) continue;
    const std::optional<Launch> other = launch_of(entry.path());
    if (!other || other->token != launch.token || other->size != launch.size) continue;
    text += join(text.empty() ? "" : ", ", "rank ", other->rank, " (process ", entry.path().filename().string(),
                 ") is stopped");
  }
  return text;
}

JoinLimit::JoinLimit(const Launch& launch, double seconds, Report report) {
  thread_ = std::thread([launch, seconds, report = std::move(report), joined = joined_.get_future()] {
    const auto joined_within = [&](double time) {
      return joined.wait_for(std::chrono::duration<double>(time)) == std::future_status::ready;
    };
    if (joined_within(seconds)) return;
    const std::string stopped = stopped_ranks_here(launch);
    constexpr double a_turn = 0.1, all_turns = 3;  // seconds
    if (joined_within(std::min(a_turn * launch.rank, all_turns) + (stopped.empty() ? all_turns : 0))) return;
    report(join("the ", launch.size, " ranks have not joined within ", seconds, " s: on ", host_name(), ", ",
                stopped.empty() ? "no rank is stopped; another host's ranks are missing or cannot connect, or one hangs"
                                : stopped));
    std::_Exit(static_cast<int>(ErrorKind::device));
  });
}

JoinLimit::~JoinLimit() {
  joined_.set_value();
  thread_.join();
}

}  // namespace twiddle
