#include "models/fingerprint.h"

#include <xxhash.h>

#include <memory>
#include <vector>

#include "framework/error.h"

namespace twiddle {

namespace {

class Fingerprint {
 public:
  void add(const void* bytes, std::size_t count) { XXH3_64bits_update(state_.get(), bytes, count); }
  void add(const std::string& text) { add(text.c_str(), text.size() + 1); }
  std::string text() const {
    std::ostringstream digits;
    digits << std::hex << XXH3_64bits_digest(state_.get());
    return digits.str();
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  static XXH3_state_t* fresh() {
    XXH3_state_t* const state = XXH3_createState();
    XXH3_64bits_reset(state);
    return state;
  }
  std::unique_ptr<XXH3_state_t, Free> state_{fresh()};
};

constexpr std::int64_t images_looked_at = 16;

void add_image(const Dataset& data, std::int64_t index, Fingerprint& print) {
  Image image;
  try {
    const Target target = data.get(index, image);
    print.add(image.pixels.data(), image.pixels.size());
    print.add(target.labels.data(), target.labels.size() * sizeof target.labels[0]);
    print.add(target.image.pixels.data(), target.image.pixels.size());
  } catch (const Error& error) {  // whoever trains on it tells
    if (error.kind() != ErrorKind::data) throw;
    print.add("cannot be read");
  }
}

}  // namespace

std::string fingerprint(Context& ctx, const Sequential& net) {
  Fingerprint print;
  for (const Parameter* parameter : net.parameters()) {
    const std::vector<float> values = parameter->variable.value().to_vector(*ctx.stream);
    print.add(parameter->name);
    print.add(values.data(), values.size() * sizeof values[0]);
  }
  return print.text();
}

std::string fingerprint(const Dataset& data) {
  Fingerprint print;
  const std::int64_t size = data.size(), looked_at = std::min(size, images_looked_at);
  for (const std::string& name : data.classes()) print.add(name);
  for (std::int64_t i = 0; i < looked_at; ++i) add_image(data, i * size / looked_at, print);
  return join(size, " images, ", print.text());
}

}  // namespace twiddle
