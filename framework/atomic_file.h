#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace twiddle {

// Files and folders that appear whole, by one rename of something already on the disk, or not at all.

// Takes bytes one part after another.
using BytesVisitor = std::function<void(std::string_view)>;

// Writes what `produce` passes to its argument under a temporary name in the same folder, syncs, renames, and syncs the
// folder. On failure, also of `produce`, the temporary file is removed and an Error tells the path and the reason; what
// was at `path` before is still there.
void write_file_atomically(const std::string& path, const std::function<void(const BytesVisitor&)>& produce);

// The same care for any small file (metrics are appended, but configs and reports are replaced).
void write_file_atomically(const std::string& path, const std::string& contents);

// Throws what writing there would be refused for, as far as that is known beforehand, and writes nothing. Folders on
// the way that are not there yet are left to whoever makes them.
void require_writable(const std::string& path);

// Removes what killed calls of write_file_atomically() for `path` left behind. Only for a caller that knows that no
// other process writes there.
void remove_temporary_files(const std::string& path);

// Renames a file or folder within one file system, and makes the new name last.
void rename_durably(const std::string& from, const std::string& to);

// The same for a folder, with another in its place already: the old one is gone afterwards. Both change places at once
// where the file system can do that; elsewhere a kill between two renames may leave neither.
void replace_folder(const std::string& from, const std::string& to);

// Whether a file name is one that a killed write_file_atomically leaves behind.
bool is_temporary_name(std::string_view name);

}  // namespace twiddle
