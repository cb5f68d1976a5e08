#pragma once
#include <string>
#include <vector>

#include "models/evaluation/evaluate.h"

namespace twiddle {

// Predicted by actual classes: of few classes the whole matrix, of many the pairs most often confused and the classes
// least often known. All labels of `confusion` are below the number of classes.
std::string confusion_html(const std::vector<std::string>& classes, const Confusion& confusion);

}  // namespace twiddle
