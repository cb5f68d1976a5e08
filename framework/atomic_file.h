#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace twiddle {

// Files and folders that appear complete or not at all: each is on the disk before one rename makes it visible.

// Takes bytes one part after another.
using BytesVisitor = std::function<void(std::string_view)>;

// Writes what `produce` passes to its argument under a temporary name in the same folder, syncs, renames, and syncs the
// folder. On failure, also of `produce`, the temporary file is removed and an Error reports the path and the reason.
// The previous file at `path` is unchanged.
void write_file_atomically(const std::string& path, const std::function<void(const BytesVisitor&)>& produce);

// The same care for any small file (metrics are appended, but configs and reports are replaced).
void write_file_atomically(const std::string& path, const std::string& contents);

// Throws if writing to `path` is known to fail, and writes nothing. Missing parent folders are not checked: the caller
// creates them.
void require_writable(const std::string& path);

// Removes temporary files that killed calls of write_file_atomically() for `path` left. Call only if no other process
// writes there.
void remove_temporary_files(const std::string& path);

// Renames a file or folder within one file system, and makes the new name last.
void rename_durably(const std::string& from, const std::string& to);

// Renames a folder over an existing one, which is removed. The two are exchanged atomically if the file system supports
// it; else a kill between two renames may leave neither.
void replace_folder(const std::string& from, const std::string& to);

// Whether a file name is that of a temporary file of write_file_atomically().
bool is_temporary_name(std::string_view name);

}  // namespace twiddle
