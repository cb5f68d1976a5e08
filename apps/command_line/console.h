#pragma once
#include <cstdio>
#include <memory>
#include <string>

#include "apps/run_folder/own_file.h"

namespace twiddle {

bool is_terminal(std::FILE* file);  // one that obeys escape codes: TERM is not dumb
bool use_colour(std::FILE* file);   // a terminal, and NO_COLOR is not set

// Text for people on standard error, written at once. Where it cannot be written it is dropped: a full disk or a reader
// that went away is no reason to end anything.
void tell(const std::string& text);

// Gives standard streams that are closed a place where reading and writing fails. Otherwise the next file to be opened
// would get such a stream's number, and text meant for people would be written into it.
void fill_standard_streams();

// Where a run talks to people: standard error and, once there is a run folder, its log file. On a terminal a last line
// can be redrawn in place. Where one of the two cannot be written, the other says so, once.
class Console {
 public:
  explicit Console(int verbosity);  // -1: silent but for the log file, 1: more
  ~Console();

  void log_to(const std::string& path);     // every later line is appended there, too
  void line(const std::string& text);       // one whole line, or several
  void redraw(const std::string& text);     // replaces the last line that redraw() drew; terminals only
  void log(const std::string& text);        // for the log file alone
  void detail(const std::string& text);     // a line for those who asked for more; the log file has it always
  void highlight(const std::string& text);  // a line that matters, bold where there is colour
  bool terminal() const { return terminal_; }
  int width() const;  // columns of the terminal

 private:
  void show(const std::string& text);
  std::string erased();  // what takes the redrawn line off the terminal, where there is one
  bool quiet_, verbose_, terminal_, colour_;
  bool drawn_ = false, told_no_terminal_ = false, told_no_log_ = false;
  std::unique_ptr<std::FILE, CloseFile> log_;
};

}  // namespace twiddle
