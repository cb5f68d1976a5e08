#pragma once
#include <memory>
#include <string>

#include "framework/config/params.h"

namespace twiddle {

// A string as a source of places: its lines, with any line ends.
std::shared_ptr<const SourceText> make_source(const std::string& name, const std::string& text);

// Whether it is UTF-8 without control characters, which a YAML file can hold as one value.
bool is_line_of_text(const std::string& bytes);

// The tree of one YAML document, of which this project speaks the plain part: mappings, lists and scalars, no anchors,
// tags, merge keys or second documents. If the string is not YAML, returns a null node and adds errors to the
// diagnostics. A source without lines gives places that name it alone.
ConfigNode parse_yaml(const std::string& text, const std::shared_ptr<const SourceText>& source,
                      Diagnostics& diagnostics);

}  // namespace twiddle
