#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "apps/command_line/console.h"
#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Limits the size of this process's files during its lifetime, as on a full disk.
class FileSizeLimit {
 public:
  static constexpr rlim_t bytes = 4096;
  FileSizeLimit() : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

// Programs whose output cannot be written, or whose terminal closes.
class Output : public testing::Test {
 protected:
  Output() : out_(fresh_folder("output")) {
    if (!fs::exists("/dev/full")) skip_ = true;
  }
  ~Output() override { fs::remove_all(out_); }

  std::string train(const std::string& more) const {
    return "\"$TWIDDLE\" train models/digits.yaml --out " + out_.string() + " " + more;
  }
  fs::path run() const { return out_ / "digits-001"; }
  std::string log() const { return read_text(run() / "train.log"); }
  void wait_for_steps(const Program& program) const {
    EXPECT_TRUE(program.comes_to([&] { return read_text(run() / "metrics.jsonl").size() >= 500; })) << program.err();
  }

  fs::path out_;
  bool skip_ = false;
};

TEST_F(Output, KeepsExitCodeWithoutStandardError) {
  if (skip_) GTEST_SKIP() << "no /dev/full";
  EXPECT_EQ(run_shell("exec \"$TWIDDLE\" check models/nosuch.yaml 2>/dev/full").code, 2);
  EXPECT_EQ(run_shell("exec \"$TWIDDLE\" 2>/dev/full").code, 2);
}

TEST_F(Output, ContinuesIfStandardErrorIsFull) {
  if (skip_) GTEST_SKIP() << "no /dev/full";
  EXPECT_EQ(run_shell("exec " + train("--epochs 2 --limit-batches 3 2>/dev/full")).code, 0);
  const std::string said =
      "standard error cannot be written (No space left on device): missing lines are only in this log";
  EXPECT_NE(log().find(said), std::string::npos) << log();
  EXPECT_EQ(log().find(said), log().rfind(said));
  EXPECT_NE(log().find("done in"), std::string::npos) << log();
}

TEST_F(Output, ContinuesIfLogCannotBeWritten) {
  Console console(-1);
  std::ofstream(out_ / "train.log") << std::string(FileSizeLimit::bytes, 'x');
  console.log_to((out_ / "train.log").string());
  const FileSizeLimit full;
  testing::internal::CaptureStderr();
  console.line("one");
  console.line(std::string(100000, 'x'));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(said, "the log file cannot be written (File too large): later lines are missing in it\n"), 1u)
      << said;
}

TEST(Console, SendsNoEscapesToDumbTerminals) {
  const int leader = posix_openpt(O_RDWR | O_NOCTTY);
  if (leader < 0 || grantpt(leader) != 0 || unlockpt(leader) != 0) GTEST_SKIP() << "no pseudo-terminal";
  const std::unique_ptr<std::FILE, CloseFile> terminal(std::fopen(ptsname(leader), "r+"));
  if (!terminal) GTEST_SKIP() << "no pseudo-terminal";
  const char* const before = std::getenv("TERM");
  const std::string kind = before == nullptr ? "xterm" : before;
  setenv("TERM", "xterm", 1);
  EXPECT_TRUE(is_terminal(terminal.get()));
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(is_terminal(terminal.get()));
  EXPECT_FALSE(use_colour(terminal.get()));
  setenv("TERM", kind.c_str(), 1);
  close(leader);
}

TEST_F(Output, ContinuesIfPipeIsClosed) {
  const Finished finished = run_shell("{ " + train("--epochs 3 --limit-batches 3; echo $? >") +
                                      (out_ / "code").string() + "; } 2>&1 | head -n 1");
  EXPECT_EQ(finished.code, 0);
  EXPECT_NE(log().find("Broken pipe"), std::string::npos) << log();
  EXPECT_NE(log().find("best val-top1"), std::string::npos) << log();
  EXPECT_EQ(read_text(out_ / "code"), "1\n");  // the results on standard output were lost, and that alone
}

TEST_F(Output, CompletesRunWithoutStandardStreams) {
  EXPECT_EQ(run_shell("exec " + train("--epochs 1 --limit-batches 3 <&- >&- 2>&-")).code, 1);
  EXPECT_EQ(read_text(run() / "config.yaml").rfind("# Every key as it was used", 0), 0u);
  EXPECT_TRUE(fs::exists(run() / "checkpoints" / "step-00000003"));
  EXPECT_NE(log().find("report "), std::string::npos) << log();
}

TEST_F(Output, SavesOnEveryStopSignal) {
  for (const int number : {SIGTERM, SIGHUP, SIGUSR1, SIGXCPU}) {
    fs::remove_all(run());
    Program program({"-c", "exec " + train("--epochs 100000")}, "/bin/sh");
    wait_for_steps(program);
    program.signal(number);
    program.signal(number);  // some send it twice
    EXPECT_EQ(program.wait(), 130) << number;
    EXPECT_NE(program.err().find("saved step "), std::string::npos) << program.err();
    EXPECT_FALSE(fs::is_empty(run() / "checkpoints"));
  }
}

TEST_F(Output, IgnoresHangupUnderNohup) {
  Program program({"-c", "trap '' HUP; exec " + train("--epochs 100000")}, "/bin/sh");
  wait_for_steps(program);
  program.signal(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(program.err().find("stopping"), std::string::npos);
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(), 130);
}

}  // namespace
}  // namespace twiddle
