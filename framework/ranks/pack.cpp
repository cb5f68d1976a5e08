#include "framework/ranks/pack.h"

#include "framework/error.h"

namespace twiddle {

namespace {

Error wrong_message(std::size_t bytes, const char* what) {
  return Error(ErrorKind::device, join("a message of ", bytes, " bytes from another rank is ", what,
                                       " than expected: start all ranks with the same program"));
}

}  // namespace

const char* Unpacker::take(std::uint64_t count, std::size_t size) {
  if (count > rest_.size() / size) throw wrong_message(whole_, "shorter");
  const char* const from = rest_.data();
  rest_.remove_prefix(count * size);
  return from;
}

void Unpacker::finish() const {
  if (!rest_.empty()) throw wrong_message(whole_, "longer");
}

}  // namespace twiddle
