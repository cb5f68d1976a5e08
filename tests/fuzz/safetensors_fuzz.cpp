#include "models/checkpoints/safetensors.h"

#include "framework/printable.h"
#include "layers/sequential.h"
#include "models/checkpoints/safetensors_header.h"
#include "models/checkpoints/weights.h"
#include "tests/fuzz/input_file.h"

// Any file as weights: it is read or refused; weights that were read can be written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twiddle;
  static InputFile file;
  static Context ctx({}, 1);
  static const Sequential net(Shape{1, 1, 1});
  const std::string& path = file.holding({data, size});
  try {
    const SafeTensors contents = read_safetensors(path);
    const SafeTensorsHeader header =
        parse_header(format_header(source_of(contents).arrays, contents.metadata), "written");
    require(header.entries.size() == contents.arrays.size() && header.metadata == contents.metadata, "lost in writing");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data || error.what() != printable_lines(error.what())) throw;
  }
  try {
    load_weights(path, ctx, net);
  } catch (const Error& error) {
    const bool expected = error.kind() == ErrorKind::data || error.kind() == ErrorKind::diverged;  // weights with NaN
    if (!expected || error.what() != printable_lines(error.what())) throw;
  }
  return 0;
}
