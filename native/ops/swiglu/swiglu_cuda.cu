#include "ops/swiglu/swiglu_cuda.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

__global__ void swiglu_fwd_kernel(bf16* act, const bf16* gu, unsigned vectors, unsigned per_row) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const i64 t = i / per_row, col = i % per_row * 8, I = i64{per_row} * 8;
  float gate[8], up[8];
  load8(gate, gu + t * 2 * I + col);
  load8(up, gu + t * 2 * I + I + col);
#pragma unroll
  for (int c = 0; c < 8; ++c) up[c] *= silu(gate[c]);
  store8(act + t * I + col, up);
}

__global__ void swiglu_bwd_kernel(bf16* dgu, bf16* act_out, const bf16* dact, const bf16* gu,
                                  unsigned vectors, unsigned per_row) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const i64 t = i / per_row, col = i % per_row * 8, I = i64{per_row} * 8;
  float gate[8], up[8], d[8];
  load8(gate, gu + t * 2 * I + col);
  load8(up, gu + t * 2 * I + I + col);
  load8(d, dact + t * I + col);
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const float s = sigmoid(gate[c]), silu_gate = gate[c] * s;
    const float d_up = d[c] * silu_gate;
    const float d_gate = d[c] * up[c] * silu_slope(gate[c], s);
    d[c] = silu_gate * up[c];
    gate[c] = d_gate;
    up[c] = d_up;
  }
  store8(dgu + t * 2 * I + col, gate);
  store8(dgu + t * 2 * I + I + col, up);
  if (act_out) store8(act_out + t * I + col, d);
}

unsigned count_vectors(i64 T, i64 I) {
  require_size(I % 8 == 0, "intermediate_size", I, "multiples of 8");
  require_size(T * I / 8 < (i64{1} << 32), "tokens x intermediate_size", T * I, "fewer than 2^35 elements");
  return static_cast<unsigned>(T * I / 8);
}

}  // namespace

void launch_swiglu_fwd(bf16* act, const bf16* gu, i64 T, i64 I, cudaStream_t stream) {
  const unsigned vectors = count_vectors(T, I);
  swiglu_fwd_kernel<<<ceil_div(vectors, kThreads), kThreads, 0, stream>>>(act, gu, vectors,
                                                                          static_cast<unsigned>(I / 8));
  check_launch("swiglu_fwd");
}

void launch_swiglu_bwd(bf16* dgu, bf16* act_out, const bf16* dact, const bf16* gu, i64 T, i64 I,
                       cudaStream_t stream) {
  const unsigned vectors = count_vectors(T, I);
  swiglu_bwd_kernel<<<ceil_div(vectors, kThreads), kThreads, 0, stream>>>(dgu, act_out, dact, gu, vectors,
                                                                          static_cast<unsigned>(I / 8));
  check_launch("swiglu_bwd");
}

}  // namespace tessera
