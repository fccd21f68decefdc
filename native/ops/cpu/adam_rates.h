// Scalars of one AdamW step over one segment.
#pragma once

namespace tessera {

struct AdamRates {
  double shrink;  // lr * weight_decay
  double beta1, beta2;
  double step_size;   // lr / (1 - beta1^t)
  double root_bias2;  // sqrt(1 - beta2^t)
  double eps;
  double grad_scale;  // applied to every gradient first
};

}  // namespace tessera
