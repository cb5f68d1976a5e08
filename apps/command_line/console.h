#pragma once
#include <cstdio>
#include <memory>
#include <string>

#include "apps/run_folder/own_file.h"

namespace twiddle {

bool is_terminal(std::FILE* file);  // a terminal that interprets escape codes: TERM is not dumb
bool use_colour(std::FILE* file);   // a terminal, and NO_COLOR is not set

// Writes text for people to standard error without buffering. Ignores write errors: a full disk or a closed pipe must
// not stop the program.
void write_stderr(const std::string& text);

// Replaces closed standard streams by descriptors whose reads and writes fail. Otherwise the next opened file would get
// the stream's number, and messages would be written into that file.
void fill_standard_streams();

// Messages of a run go to standard error and, once there is a run folder, to its log file. On a terminal, the last line
// can be redrawn in place. If one of the two cannot be written, the other reports that once.
class Console {
 public:
  explicit Console(int verbosity);  // -1: writes to the log file only, 1: verbose
  ~Console();

  void log_to(const std::string& path);     // appends every later line to this file, too
  void line(const std::string& text);       // one or more whole lines
  void redraw(const std::string& text);     // replaces the last line that redraw() drew; terminals only
  void log(const std::string& text);        // to the log file only
  void detail(const std::string& text);     // shown if verbosity is 1; always in the log file
  void highlight(const std::string& text);  // an important line, bold if color is used
  bool terminal() const { return terminal_; }
  int width() const;  // columns of the terminal

 private:
  void show(const std::string& text);
  std::string erased();  // escape codes that clear the redrawn line; empty if there is none
  bool quiet_, verbose_, terminal_, colour_;
  bool drawn_ = false, terminal_failure_reported_ = false, log_failure_reported_ = false;
  std::unique_ptr<std::FILE, CloseFile> log_;
};

}  // namespace twiddle
