#pragma once
#include <memory>
#include <string>

#include "framework/config/params.h"

namespace twiddle {

// A text as a source of places: its lines, whatever ends them.
std::shared_ptr<const SourceText> make_source(const std::string& name, const std::string& text);

// Whether it is UTF-8 without control characters, which a YAML file can hold as one value.
bool is_line_of_text(const std::string& bytes);

// The tree of one YAML document, of which this project speaks the plain part: mappings, lists and scalars, no anchors,
// tags, merge keys or second documents. Of a text that is no YAML a null node comes back, and errors in the
// diagnostics. A source without lines gives places that name it alone.
ConfigNode parse_yaml(const std::string& text, const std::shared_ptr<const SourceText>& source,
                      Diagnostics& diagnostics);

}  // namespace twiddle
