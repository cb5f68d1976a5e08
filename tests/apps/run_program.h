#pragma once
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/temp_path.h"

namespace twiddle {

inline std::string read_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Returns a new, empty folder for the calling test.
inline std::filesystem::path fresh_folder(const std::string& name) {
  const std::filesystem::path folder = temp_path(name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

// Path of `twiddle`. A machine that runs another machine's build sets it by a variable.
inline std::string program_path() {
  const char* const elsewhere = std::getenv("TWIDDLE_PROGRAM");
  return elsewhere ? elsewhere : TWIDDLE_PROGRAM;
}

// Runs `twiddle` or another program as a separate process with its output in files.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, const std::string& program = program_path())
      : folder_(new_folder()) {
    const std::string out = (folder_ / "out").string(), err = (folder_ / "err").string();
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    process_ = fork();
    if (process_ != 0) return;
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);  // a test must not use the user's cache
    setenv("OMP_NUM_THREADS", "1", 1);             // so that tests side by side do not wait for each other's threads
    setenv("TWIDDLE", program_path().c_str(), 1);  // for a shell's script
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  ~Program() {
    if (process_ > 0) kill(process_, SIGKILL), wait();
    std::filesystem::remove_all(folder_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return process_; }
  void signal(int number) { kill(process_, number); }
  // Waits until the condition holds, however long that takes on a busy machine (ctest stops a test that hangs). Returns
  // false if the program exited before.
  template <class Condition>
  bool comes_to(const Condition& condition) const {
    while (!condition()) {
      siginfo_t info{};
      const int asked = waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
      if (asked != 0 || info.si_pid == process_) return condition();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }
  int wait() {  // the exit code; 128 + N where signal N ended it
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string out() const { return read_text(folder_ / "out"); }
  std::string err() const { return read_text(folder_ / "err"); }

 private:
  static std::filesystem::path new_folder() {  // two programs at once have one each
    std::string name = temp_path("program_XXXXXX");
    return mkdtemp(name.data());
  }

  std::filesystem::path folder_;
  pid_t process_ = -1;
};

struct Finished {
  int code = 0;
  std::string out, err;
};
inline Finished run_program(const std::vector<std::string>& arguments, const std::string& path = program_path()) {
  Program program(arguments, path);
  const int code = program.wait();
  return {code, program.out(), program.err()};
}
// Runs a script in which "$TWIDDLE" is the program.
inline Finished run_shell(const std::string& script) {
  return run_program({"-c", script}, "/bin/sh");
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace twiddle
