#pragma once

#include <vector>

#include "model/layout.h"

namespace tessera {

// Floating-point operations that a training step's mathematics asks for: 6 for each parameter of a matrix and
// position (two forward, four backward), the head for its own rows, and causal attention by the square of
// each sequence's length. What is computed again for want of memory does not count, nor do element-wise
// operations and the delta rule's state.
//   sequences: positions of each sequence; head_rows: rows that go through the vocabulary's matrix.
double step_flops(const ModelConfig& config, const Layout& layout, const std::vector<i64>& sequences,
                  i64 head_rows);

}  // namespace tessera
