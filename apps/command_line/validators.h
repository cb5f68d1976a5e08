#pragma once
#include <functional>
#include <string>

namespace twiddle {

// Checks for an option's text, as CLI11 wants them: what they return is the error, or nothing. They refuse what CLI11
// would read halfway, such as "10 minutes".
using Validator = std::function<std::string(const std::string&)>;
Validator whole_number_between(long long least, long long most);
Validator number_between(double least, double most);

}  // namespace twiddle
