#include "framework/ranks/communicator.h"

#include <algorithm>
#include <cstdlib>

#include "framework/error.h"
#include "framework/interrupted.h"

namespace twiddle {

namespace {

class OneRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(Stream&, float*, std::int64_t) override {}
  void reduce_scatter(Stream&, float*, std::int64_t) override {}
  void all_gather(Stream&, float*, std::int64_t) override {}
  void barrier() override {}
  std::vector<std::string> gather(const std::string& text) override { return {text}; }
  std::optional<std::vector<std::string>> gather_last(const std::string& text, double) override { return {{text}}; }
  void abort(int code) override { std::_Exit(code); }
  void while_waiting(WhileWaiting) override {}
};

// The first letter of what gather_or_fail sends: one of these, or the kind of the error as a digit.
constexpr char fine = '+', interrupted = 'i';

}  // namespace

std::unique_ptr<Communicator> make_one_rank() {
  return std::make_unique<OneRank>();
}

bool any(Communicator& ranks, bool flag) {
  if (ranks.size() == 1) return flag;
  const std::vector<std::string> flags = ranks.gather(flag ? "1" : "0");
  return std::find(flags.begin(), flags.end(), "1") != flags.end();
}

std::vector<std::string> gather_or_fail(Communicator& ranks, const std::function<std::string()>& make) {
  if (ranks.size() == 1) return {make()};
  std::string text;
  try {
    text = fine + make();
  } catch (const Error& error) {
    text = static_cast<char>('0' + static_cast<int>(error.kind())) + std::string(error.what());
  } catch (const Interrupted& stopped) {
    text = interrupted + std::string(stopped.what());
  }
  std::vector<std::string> texts = ranks.gather(text);
  const auto failed = std::find_if(texts.begin(), texts.end(),
                                   [](const std::string& each) { return each[0] != fine && each[0] != interrupted; });
  if (failed != texts.end()) {
    // An error on all ranks, such as a key missing in a config, is reported like that of a single process.
    const bool everywhere = std::all_of(texts.begin(), texts.end(), [&](const auto& each) { return each == *failed; });
    throw Error(static_cast<ErrorKind>((*failed)[0] - '0'),
                everywhere ? failed->substr(1) : join("rank ", failed - texts.begin(), ": ", failed->substr(1)));
  }
  for (std::string& each : texts) {
    if (each[0] == interrupted) throw Interrupted(each.substr(1));
    each.erase(0, 1);
  }
  return texts;
}

}  // namespace twiddle
