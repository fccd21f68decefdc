// Self-test of a backend's kernels on the device at hand: each runs once on random values in a model's own
// head and row sizes and is compared with the same mathematics in fp64 on the host.
#pragma once

#include "core/json_fwd.h"
#include "model/config.h"
#include "ops/backend.h"

namespace tessera {

// {ok, device, kernels: [{operation, output, relativeError, tolerance, ok}], failures, message, seconds}.
// The delta rule's reference is the token-by-token recurrence, another algorithm than the chunked kernels.
// Heads are cut to one group of each kind and matrix products to 192 columns: kernels differ by sizes within
// a head, not by their number.
Json test_numerics(Backend& backend, const ModelConfig& config);

}  // namespace tessera
