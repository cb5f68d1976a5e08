#include "framework/ranks/rank_texts.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

using GoesOn = std::function<bool()>;

bool send_text(const Socket& socket, const std::string& text, const GoesOn& goes_on) {
  const std::uint64_t size = text.size();
  return send_bytes(socket, &size, sizeof size, goes_on) == Transfer::done &&
         send_bytes(socket, text.data(), text.size(), goes_on) == Transfer::done;
}

std::string room_for(std::uint64_t size) try {
  return std::string(size, ' ');
} catch (const std::exception&) {  // std::bad_alloc, or std::length_error of a size that no string has
  throw Error(ErrorKind::device,
              join("no memory for ", size, " bytes (", format_bytes(size), ") that another rank sends at once"));
}

std::optional<std::string> receive_text(const Socket& socket, const GoesOn& goes_on) {
  std::uint64_t size = 0;
  if (receive_bytes(socket, &size, sizeof size, goes_on) != Transfer::done) return std::nullopt;
  std::string text = room_for(size);
  if (receive_bytes(socket, text.data(), size, goes_on) != Transfer::done) return std::nullopt;
  return text;
}

// How many, and then each.
bool send_texts(const Socket& socket, const std::vector<std::string>& texts, const GoesOn& goes_on) {
  const std::uint64_t count = texts.size();
  return send_bytes(socket, &count, sizeof count, goes_on) == Transfer::done &&
         std::all_of(texts.begin(), texts.end(), [&](const auto& text) { return send_text(socket, text, goes_on); });
}

std::optional<std::vector<std::string>> receive_texts(const Socket& socket, const GoesOn& goes_on) {
  std::uint64_t count = 0;
  if (receive_bytes(socket, &count, sizeof count, goes_on) != Transfer::done) return std::nullopt;
  std::vector<std::string> texts;
  while (texts.size() < count) {
    std::optional<std::string> text = receive_text(socket, goes_on);
    if (!text) return std::nullopt;
    texts.push_back(*std::move(text));
  }
  return texts;
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
    return receive_texts(line_.front(), goes_on);
  }
  std::vector<std::string> texts{text};
  for (const Socket& socket : line_) {
    std::optional<std::string> one = receive_text(socket, goes_on);
    if (!one) return std::nullopt;
    texts.push_back(*std::move(one));
  }
  for (const Socket& socket : line_)
    if (!send_texts(socket, texts, goes_on)) return std::nullopt;
  return texts;
}

}  // namespace twiddle
