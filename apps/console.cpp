#include "apps/console.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {

bool is_terminal(std::FILE* file) {
  return isatty(fileno(file)) == 1;
}

bool use_colour(std::FILE* file) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(file) && (no_colour == nullptr || *no_colour == '\0');
}

Console::Console(int verbosity)
    : quiet_(verbosity < 0), verbose_(verbosity > 0), terminal_(is_terminal(stderr)), colour_(use_colour(stderr)) {}

Console::~Console() {
  if (drawn_) std::fputc('\n', stderr);  // whatever comes next starts on a line of its own
}

void Console::log_to(const std::string& path) {
  log_.reset(std::fopen(path.c_str(), "a"));
  if (!log_) throw Error("cannot write " + path + ": " + std::strerror(errno));
}

void Console::log(const std::string& text) {
  if (!log_) return;
  fmt::print(log_.get(), "{}\n", printable_lines(text));
  std::fflush(log_.get());
}

void Console::line(const std::string& text) {
  log(text);
  if (quiet_) return;
  erase_drawn();
  fmt::print(stderr, "{}\n", printable_lines(text));
}

void Console::redraw(const std::string& text) {
  if (quiet_ || !terminal_) return;
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  drawn_ = true;
}

void Console::detail(const std::string& text) {
  if (verbose_) return line(text);
  log(text);
}

void Console::highlight(const std::string& text) {
  if (!colour_ || quiet_) return line(text);
  log(text);
  erase_drawn();
  fmt::print(stderr, "\033[1m{}\033[0m\n", printable_lines(text));
}

int Console::width() const {
  winsize size{};
  return ioctl(fileno(stderr), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Console::erase_drawn() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace twiddle
