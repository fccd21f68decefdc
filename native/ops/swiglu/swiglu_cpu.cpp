#include "ops/swiglu/swiglu_cpu.h"

#include "ops/cpu/math.h"
#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {

template <class Real>
void swiglu_fwd(int threads, Real* act, const Real* gu, i64 T, i64 I) {
  parallel_blocks(threads, T, 16, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      const Real* g = gu + t * 2 * I;
      const Real* u = g + I;
      Real* out = act + t * I;
      for (i64 j = 0; j < I; ++j) out[j] = g[j] * sigmoid(g[j]) * u[j];
    }
  });
}

template <class Real>
void swiglu_bwd(int threads, Real* dgu, Real* act_out, const Real* dact, const Real* gu, i64 T, i64 I) {
  parallel_blocks(threads, T, 16, [&](i64 begin, i64 end, i64) {
    for (i64 t = begin; t < end; ++t) {
      const Real* g = gu + t * 2 * I;
      const Real* da = dact + t * I;
      Real* dg = dgu + t * 2 * I;
      // Each element is read before its place is written, so both in-place uses are safe, and lanes do not
      // overlap.
#pragma omp simd
      for (i64 j = 0; j < I; ++j) {
        const Real gate = g[j], up = g[I + j], d = da[j];
        const Real open = sigmoid(gate);
        if (act_out) act_out[t * I + j] = gate * open * up;
        dg[j] = d * up * open * (Real(1) + gate * (Real(1) - open));
        dg[I + j] = d * gate * open;
      }
    }
  });
}

TESSERA_INSTANTIATE(swiglu_fwd);
TESSERA_INSTANTIATE(swiglu_bwd);

}  // namespace tessera::TESSERA_ISA
