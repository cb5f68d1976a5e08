#pragma once
#include <cstdio>
#include <memory>
#include <string>

namespace twiddle {

// Opens files of a run folder that are written in place. A run folder may come from another person, so a name in it may
// be a link to a file outside the run.

// Opens such a file for reading and writing and makes it if it is missing; `more_flags` are those of open(2). Throws an
// Error if the name is a symbolic link, has a second name (a hard link), or is not a plain file.
int open_own_file(const std::string& path, int more_flags = 0);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
std::unique_ptr<std::FILE, CloseFile> append_to_own_file(const std::string& path);  // checked the same way

}  // namespace twiddle
