#pragma once

namespace twiddle {

// Has OpenMP compute with so many threads; 0: with as many as it takes by itself. Throws an Error of kind device where
// this process cannot have them at once. OpenMP's library would end it on the spot, from within the first computation,
// so that this comes before any.
void use_threads(int count);

}  // namespace twiddle
