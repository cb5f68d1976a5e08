#include "layers/conv/choice_cache.h"

#include "tests/fuzz/input_file.h"

// Any bytes as a file of choices: it is read, or left alone with a warning, and never an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twiddle;
  static const InputFolder folder;
  const std::string file = folder.write("choices.txt", {data, size});
  ChoiceCache cache(file, [](const std::string&) {});
  cache.find("a key");
  cache.store("a key", {"fft", 1.5});
  return 0;
}
