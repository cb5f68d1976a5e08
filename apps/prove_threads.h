#pragma once

namespace twiddle {

// Throws an Error of kind device where this process cannot have so many threads at once. OpenMP's library would end it
// on the spot, from within the first computation.
void prove_threads(int count);

}  // namespace twiddle
