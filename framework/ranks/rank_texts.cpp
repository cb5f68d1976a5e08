#include "framework/ranks/rank_texts.h"

#include <chrono>
#include <cstdint>
#include <exception>

#include "framework/error.h"
#include "framework/ranks/pack.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using GoesOn = std::function<bool()>;

bool send_text(const Socket& socket, const std::string& text, const GoesOn& goes_on) {
  const std::uint64_t size = text.size();
  return send_bytes(socket, &size, sizeof size, goes_on) == Transfer::done &&
         send_bytes(socket, text.data(), text.size(), goes_on) == Transfer::done;
}

std::string buffer_of(std::uint64_t size) try {
  return std::string(size, ' ');
} catch (const std::exception&) {  // std::bad_alloc, or std::length_error of a size that no string has
  throw Error(ErrorKind::device,
              join("no memory for ", size, " bytes (", format_bytes(size), ") that another rank sends at once"));
}

std::optional<std::string> receive_text(const Socket& socket, const GoesOn& goes_on) {
  std::uint64_t size = 0;
  if (receive_bytes(socket, &size, sizeof size, goes_on) != Transfer::done) return std::nullopt;
  std::string text = buffer_of(size);
  if (receive_bytes(socket, text.data(), size, goes_on) != Transfer::done) return std::nullopt;
  return text;
}

}  // namespace

std::optional<std::vector<std::string>> RankTexts::gather(const std::string& text, std::optional<double> limit,
                                                          const Communicator::WhileWaiting& listener) {
  const auto start = std::chrono::steady_clock::now();
  const GoesOn goes_on = [&] {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (listener) listener(seconds);
    return !limit || seconds < *limit;
  };
  if (rank_ != 0) {
    if (!send_text(line_.front(), text, goes_on)) return std::nullopt;
    const std::optional<std::string> all = receive_text(line_.front(), goes_on);
    return all ? std::optional(unpack<std::vector<std::string>>(*all)) : std::nullopt;
  }
  std::vector<std::string> texts{text};
  for (const Socket& socket : line_) {
    std::optional<std::string> one = receive_text(socket, goes_on);
    if (!one) return std::nullopt;
    texts.push_back(*std::move(one));
  }
  const std::string all = pack(texts);
  for (const Socket& socket : line_)
    if (!send_text(socket, all, goes_on)) return std::nullopt;
  return texts;
}

}  // namespace twiddle
