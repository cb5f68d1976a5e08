#include "models/checkpoints/fingerprint.h"

#include <vector>

#include "framework/error.h"
#include "models/checkpoints/checksum.h"

namespace twiddle {

namespace {

template <class T>
void add_values(Checksum& print, const std::vector<T>& values) {
  print.add({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)});
}

void add_text(Checksum& print, const std::string& text) {
  print.add({text.c_str(), text.size() + 1});
}

constexpr std::int64_t images_looked_at = 16;

void add_image(const Dataset& data, std::int64_t index, Checksum& print) {
  Image image;
  try {
    const Target target = data.get(index, image);
    add_values(print, image.pixels);
    add_values(print, target.labels);
    add_values(print, target.image.pixels);
  } catch (const Error& error) {  // training on this image reports the error
    if (error.kind() != ErrorKind::data) throw;
    add_text(print, "cannot be read");
  }
}

}  // namespace

std::string fingerprint(Context& ctx, const Sequential& net) {
  Checksum print;
  for (const Parameter* parameter : net.parameters()) {
    const std::vector<float> values = parameter->variable.value().to_vector(*ctx.stream);
    add_text(print, parameter->name);
    add_values(print, values);
  }
  return print.text();
}

std::string fingerprint(const Dataset& data) {
  Checksum print;
  const std::int64_t size = data.size(), looked_at = std::min(size, images_looked_at);
  for (const std::string& name : data.classes()) add_text(print, name);
  for (std::int64_t i = 0; i < looked_at; ++i) add_image(data, i * size / looked_at, print);
  return join(size, " images, ", print.text());
}

}  // namespace twiddle
