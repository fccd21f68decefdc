// Which family of kernels serves an operation that has more than one.
#pragma once

#include <cstdint>

namespace tessera {

enum class KernelTier : std::uint8_t {
  reference,  // plain, slow, any head size: for tiny models and for checking the others
  portable,   // mma.sync + cp.async + ldmatrix, at most 99 KB of shared memory: sm_80 and later
  hopper,     // wgmma, up to 227 KB of shared memory: sm_90a only
};

}  // namespace tessera
