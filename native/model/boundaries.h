// The boundaries of packed sequences, checked before anything is launched with them.
#pragma once

#include <span>

#include "ops/backend.h"

namespace tessera {

// cu: where each sequence begins, and the end of the last one. First 0, never falling, last `positions`;
// equal neighbours are a sequence that is not there. Throws EngineError bad_boundaries, naming the entry.
void check_boundaries(std::span<const i32> cu, i64 positions);

}  // namespace tessera
