#pragma once
#include <string>
#include <vector>

namespace twiddle {

// What to say of a layer that is not among the known ones: its name here, why it is not needed, or that it is missing;
// else the name that was probably meant.
std::string unknown_layer(const std::string& kind, const std::vector<std::string>& known);

}  // namespace twiddle
