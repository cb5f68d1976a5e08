#pragma once
#include <string>

namespace twiddle {

// Returns the absolute path of the file that a run folder's config was made from, read from environment.json; empty if
// that file is missing or has no such path.
std::string config_origin(const std::string& run_folder);

}  // namespace twiddle
