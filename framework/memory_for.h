#pragma once
#include <new>
#include <string_view>

#include "framework/error.h"

namespace twiddle {

// Runs the work. If the host runs out of memory, throws an Error of kind device that names what the memory was for.
template <class Work>
auto memory_for(std::string_view what, const Work& work) try {
  return work();
} catch (const std::bad_alloc&) {
  throw Error(ErrorKind::device, join("out of memory on the host, for ", what));
}

}  // namespace twiddle
