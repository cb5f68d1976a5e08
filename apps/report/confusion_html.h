#pragma once
#include <string>
#include <vector>

#include "models/evaluation/evaluate.h"

namespace twiddle {

// Predicted by actual classes. With few classes, shows the whole matrix. With many, shows the most frequently confused
// pairs and the classes with the lowest recall. All labels of `confusion` are less than the number of classes.
std::string confusion_html(const std::vector<std::string>& classes, const Confusion& confusion);

}  // namespace twiddle
