#include "data/files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>

#include "framework/error.h"
#include "framework/printable.h"

namespace twiddle {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(ErrorKind::data, join("cannot read '", shown(path), "': ", reason));
}

}  // namespace

std::uint64_t size_of_file(const std::string& path) {
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  const bool other = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  if (other && !std::filesystem::is_directory(status)) fail(path, "it is not a regular file");
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  if (code) fail(path, code.message());
  return size;
}

std::vector<std::uint8_t> read_bytes(const std::string& path) {
  return read_first_bytes(path, std::numeric_limits<std::size_t>::max());
}

std::vector<std::uint8_t> read_first_bytes(const std::string& path, std::size_t most) {
  std::vector<std::uint8_t> bytes(std::min<std::uint64_t>(size_of_file(path), most));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) fail(path, std::generic_category().message(errno));
  const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), file.get());
  if (std::ferror(file.get())) fail(path, std::generic_category().message(errno));
  bytes.resize(got);
  return bytes;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::vector<std::string_view> lines_of(std::span<const std::uint8_t> contents) {
  std::string_view rest(reinterpret_cast<const char*>(contents.data()), contents.size());
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  std::vector<std::string_view> lines;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(trimmed(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

}  // namespace twiddle
