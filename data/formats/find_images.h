#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace twiddle {

// What a search of a folder has found, and what it has skipped.
struct FoundImages {
  std::vector<std::string> files;  // .jpg, .jpeg and .png; paths below the folder, in order
  std::int64_t others = 0;         // files with other endings
  std::int64_t hidden = 0;         // files and folders whose names begin with a dot
  std::int64_t followed = 0;       // links to folders
  std::int64_t repeated = 0;       // links to folders that were searched already

  void add_counts(const FoundImages& other);
  std::string notes() const;  // "skipped 2 files ..., followed 1 link to a folder"; empty if there is nothing to say
};

// Whether a name ends as those of JPEG and PNG files do, in letters of either case.
bool has_image_ending(const std::string& path);

// Searches a folder and those in it, each once: a link to a folder that is searched anyway, or that makes a ring, is
// skipped. `progress` receives the number of images found before each entry and may throw.
FoundImages find_images(const std::string& folder, const std::function<void(std::int64_t images)>& progress = {});

}  // namespace twiddle
