#include "fft/spectrum_storage.h"

namespace twiddle {

std::string_view to_string(SpectrumStorage storage) {
  switch (storage) {
    case SpectrumStorage::interleaved:
      return "interleaved";
    case SpectrumStorage::interleaved_doubles:
      return "interleaved doubles";
    case SpectrumStorage::real:
      return "real";
    case SpectrumStorage::real_apart:
      return "real, apart";
    case SpectrumStorage::split_blocks:
      return "split blocks";
    case SpectrumStorage::half_pairs:
      return "half pairs";
    case SpectrumStorage::halves:
      return "halves";
  }
  return "?";
}

}  // namespace twiddle
