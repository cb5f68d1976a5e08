#include "apps/failure.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "apps/run_folder/config_origin.h"
#include "framework/error.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

namespace fs = std::filesystem;

TEST(Failure, NamesPathWithoutPermission) {
  const fs::filesystem_error denied("status", "hidden/net.yaml", std::make_error_code(std::errc::permission_denied));
  const Failure failure = failure_of(std::make_exception_ptr(denied));
  EXPECT_EQ(failure.text, "cannot open 'hidden/net.yaml': Permission denied");
  EXPECT_EQ(failure.code, static_cast<int>(ErrorKind::data));
}

TEST(ConfigOrigin, IsEmptyIfFolderReplacesFile) {
  const fs::path run = temp_path("folder_for_environment");
  fs::create_directories(run / "environment.json");
  EXPECT_EQ(config_origin(run.string()), "");
}

}  // namespace
}  // namespace twiddle
