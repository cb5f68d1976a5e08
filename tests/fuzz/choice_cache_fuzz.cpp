#include "layers/conv/tuner/choice_cache.h"

#include "tests/fuzz/input_file.h"

// Any bytes as a choice cache: invalid content never causes an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twiddle;
  static const InputFolder folder;
  const std::string file = folder.write("choices.txt", {data, size});
  ChoiceCache cache(file, [](const std::string&) {});
  cache.find({8, "a key"});
  cache.find_other_batch({8, "a key"});
  cache.store({8, "a key"}, {"fft", 1.5});
  return 0;
}
