#include "apps/command_line/console.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "framework/printable.h"

namespace twiddle {
namespace {

// Returns false and sets errno if only a part could be written.
bool write(std::FILE* file, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

}  // namespace

bool is_terminal(std::FILE* file) {
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind != nullptr && std::strcmp(kind, "dumb") == 0;
  return isatty(fileno(file)) == 1 && !is_dumb;
}

bool use_colour(std::FILE* file) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(file) && (no_colour == nullptr || *no_colour == '\0');
}

void write_stderr(const std::string& text) {
  static_cast<void>(write(stderr, text));
}

void fill_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) == -1)
      // open() returns the lowest free number, which is this stream's
      static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

Console::Console(int verbosity)
    : quiet_(verbosity < 0), verbose_(verbosity > 0), terminal_(is_terminal(stderr)), colour_(use_colour(stderr)) {}

Console::~Console() {
  if (drawn_) write_stderr("\n");  // ends the redrawn line, so that the next output starts on a new line
}

void Console::log_to(const std::string& path) {
  log_ = append_to_own_file(path);
}

void Console::log(const std::string& text) {
  if (!log_ || write(log_.get(), printable_lines(text) + "\n") || std::exchange(log_failure_reported_, true)) return;
  write_stderr(fmt::format("{}the log file cannot be written ({}): later lines are missing in it\n", erased(),
                           std::strerror(errno)));
}

void Console::show(const std::string& text) {
  if (write(stderr, text) || std::exchange(terminal_failure_reported_, true)) return;
  log(fmt::format("standard error cannot be written ({}): missing lines are only in this log", std::strerror(errno)));
}

void Console::line(const std::string& text) {
  log(text);
  if (!quiet_) show(erased() + printable_lines(text) + "\n");
}

void Console::redraw(const std::string& text) {
  if (quiet_ || !terminal_) return;
  show("\r\033[K" + text);
  drawn_ = true;
}

void Console::detail(const std::string& text) {
  if (verbose_) return line(text);
  log(text);
}

void Console::highlight(const std::string& text) {
  if (!colour_ || quiet_) return line(text);
  log(text);
  show(erased() + "\033[1m" + printable_lines(text) + "\033[0m\n");
}

int Console::width() const {
  winsize size{};
  return ioctl(fileno(stderr), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string Console::erased() {
  return std::exchange(drawn_, false) ? "\r\033[K" : "";
}

}  // namespace twiddle
