#pragma once
#include <string>

namespace twiddle {

std::string version();   // "0.1.0"
std::string compiler();  // "GCC 12.2.0"
std::string commit();    // "fe1576e1f0c2", "-dirty" after it where files were changed; empty: built from no checkout

}  // namespace twiddle
