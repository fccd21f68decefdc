// Reference kernels of packed causal attention: any head size up to 256. A warp per
// row, one key or query at a time, fp32 throughout. Slow; for tiny models and for checking the others.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"

namespace tessera::attention {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kPart = 8;  // dims of a lane: 32 * 8 covers head_dim

// dims lane, lane + 32, ..; zero beyond head_dim
template <typename Real>
__device__ __forceinline__ void load_part(float (&x)[kPart], const Real* row, int dim, int lane) {
#pragma unroll
  for (int i = 0; i < kPart; ++i) {
    const int d = lane + 32 * i;
    x[i] = d < dim ? static_cast<float>(row[d]) : 0.0f;
  }
}

__device__ __forceinline__ float row_dot(const float (&a)[kPart], const float (&b)[kPart]) {
  float dot = 0.0f;
#pragma unroll
  for (int i = 0; i < kPart; ++i) dot += a[i] * b[i];
  return warp_sum(dot);
}

template <typename Real>
__global__ void attention_fwd_ref_kernel(BasicArgs<Real> args, BasicOutputs<Real> out) {
  const int lane = threadIdx.x % 32, dim = args.head_dim;
  const i64 index = static_cast<i64>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (index >= static_cast<i64>(args.tokens) * args.heads) return;
  const int token = static_cast<int>(index / args.heads), head = static_cast<int>(index % args.heads);
  const int kv_head = head / args.group;
  const float scale = rsqrtf(static_cast<float>(dim));
  float q[kPart], acc[kPart] = {}, max = -INFINITY, sum = 0.0f;
  load_part(q, args.q + args.q_at(token, head), dim, lane);
  for (int j = token - args.pos[token]; j <= token; ++j) {
    float k[kPart], v[kPart];
    load_part(k, args.k + args.k_at(j, kv_head), dim, lane);
    load_part(v, args.proj + args.v_at(j, kv_head), dim, lane);
    const float s = row_dot(q, k) * scale, m = fmaxf(max, s);
    const float rescale = expf(max - m), p = expf(s - m);
    max = m;
    sum = sum * rescale + p;
#pragma unroll
    for (int i = 0; i < kPart; ++i) acc[i] = acc[i] * rescale + p * v[i];
  }
  if (lane == 0) out.lse[args.row_at(token, head)] = max + logf(sum);
#pragma unroll
  for (int i = 0; i < kPart; ++i) {
    const int d = lane + 32 * i;
    if (d >= dim) continue;
    const float o = acc[i] / sum, gate = static_cast<float>(args.proj[args.gate_at(token, head) + d]);
    out.y[args.q_at(token, head) + d] = static_cast<Real>(o / (1.0f + expf(-gate)));
    if (out.o) out.o[args.q_at(token, head) + d] = static_cast<Real>(o);
  }
}

template <typename Real>
__global__ void attention_bwd_dq_ref_kernel(BasicArgs<Real> args, BasicGradients<Real> out,
                                            const float* lse) {
  const int lane = threadIdx.x % 32, dim = args.head_dim;
  const i64 index = static_cast<i64>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (index >= static_cast<i64>(args.tokens) * args.heads) return;
  const int token = static_cast<int>(index / args.heads), head = static_cast<int>(index % args.heads);
  const int kv_head = head / args.group;
  const float scale = rsqrtf(static_cast<float>(dim));
  float q[kPart], d_o[kPart], acc[kPart] = {};
  load_part(q, args.q + args.q_at(token, head), dim, lane);
  load_part(d_o, out.d_o + args.q_at(token, head), dim, lane);
  const float row_lse = lse[args.row_at(token, head)], delta = out.delta[args.row_at(token, head)];
  for (int j = token - args.pos[token]; j <= token; ++j) {
    float k[kPart], v[kPart];
    load_part(k, args.k + args.k_at(j, kv_head), dim, lane);
    load_part(v, args.proj + args.v_at(j, kv_head), dim, lane);
    const float p = expf(row_dot(q, k) * scale - row_lse), ds = p * (row_dot(d_o, v) - delta) * scale;
#pragma unroll
    for (int i = 0; i < kPart; ++i) acc[i] += ds * k[i];
  }
#pragma unroll
  for (int i = 0; i < kPart; ++i)
    if (lane + 32 * i < dim) out.dq[args.q_at(token, head) + lane + 32 * i] = static_cast<Real>(acc[i]);
}

template <typename Real>
__global__ void attention_bwd_dkv_ref_kernel(BasicArgs<Real> args, BasicGradients<Real> out,
                                             const float* lse) {
  const int lane = threadIdx.x % 32, dim = args.head_dim;
  const i64 index = static_cast<i64>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (index >= static_cast<i64>(args.tokens) * args.kv_heads) return;
  const int token = static_cast<int>(index / args.kv_heads),
            kv_head = static_cast<int>(index % args.kv_heads);
  const float scale = rsqrtf(static_cast<float>(dim));
  float k[kPart], v[kPart], dk[kPart] = {}, dv[kPart] = {};
  load_part(k, args.k + args.k_at(token, kv_head), dim, lane);
  load_part(v, args.proj + args.v_at(token, kv_head), dim, lane);
  for (int head = kv_head * args.group; head < (kv_head + 1) * args.group; ++head) {
    for (int i = token; i < args.seq_end[token]; ++i) {
      float q[kPart], d_o[kPart];
      load_part(q, args.q + args.q_at(i, head), dim, lane);
      load_part(d_o, out.d_o + args.q_at(i, head), dim, lane);
      const float p = expf(row_dot(q, k) * scale - lse[args.row_at(i, head)]);
      const float ds = p * (row_dot(d_o, v) - out.delta[args.row_at(i, head)]) * scale;
#pragma unroll
      for (int d = 0; d < kPart; ++d) {
        dk[d] += ds * q[d];
        dv[d] += p * d_o[d];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kPart; ++i) {
    const int d = lane + 32 * i;
    if (d >= dim) continue;
    out.dk[args.k_at(token, kv_head) + d] = static_cast<Real>(dk[i]);
    out.dproj[args.v_at(token, kv_head) + d] = static_cast<Real>(dv[i]);
  }
}

// A warp per (token, head): d_o, delta, and the gate's slice of dproj.
template <typename Real>
__global__ void attention_bwd_gate_ref_kernel(BasicArgs<Real> args, BasicGradients<Real> out, const Real* dy,
                                              const Real* o) {
  const int lane = threadIdx.x % 32;
  const i64 index = static_cast<i64>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (index >= static_cast<i64>(args.tokens) * args.heads) return;
  const int token = static_cast<int>(index / args.heads), head = static_cast<int>(index % args.heads);
  float delta = 0.0f;
  for (int d = lane; d < args.head_dim; d += 32) {
    const size_t at = args.q_at(token, head) + d, gate_at = args.gate_at(token, head) + d;
    const float open = 1.0f / (1.0f + expf(-static_cast<float>(args.proj[gate_at])));
    const float g = static_cast<float>(dy[at]), value = static_cast<float>(o[at]);
    out.d_o[at] = static_cast<Real>(g * open);
    out.dproj[gate_at] = static_cast<Real>(g * value * open * (1.0f - open));
    delta += g * open * value;
  }
  delta = warp_sum(delta);
  if (lane == 0) out.delta[args.row_at(token, head)] = delta;
}

}  // namespace

template <typename Real>
void run_fwd_ref(const BasicArgs<Real>& args, const BasicOutputs<Real>& out, cudaStream_t stream) {
  const unsigned blocks = ceil_div(static_cast<i64>(args.tokens) * args.heads, kWarps);
  attention_fwd_ref_kernel<<<blocks, kThreads, 0, stream>>>(args, out);
  check_launch("attention_fwd_ref");
}

template <typename Real>
void run_bwd_ref(const BasicArgs<Real>& args, const BasicGradients<Real>& out, const float* lse,
                 const Real* dy, const Real* o, cudaStream_t stream) {
  const unsigned q_blocks = ceil_div(static_cast<i64>(args.tokens) * args.heads, kWarps);
  attention_bwd_gate_ref_kernel<<<q_blocks, kThreads, 0, stream>>>(args, out, dy, o);
  attention_bwd_dq_ref_kernel<<<q_blocks, kThreads, 0, stream>>>(args, out, lse);
  const unsigned kv_blocks = ceil_div(static_cast<i64>(args.tokens) * args.kv_heads, kWarps);
  attention_bwd_dkv_ref_kernel<<<kv_blocks, kThreads, 0, stream>>>(args, out, lse);
  check_launch("attention_bwd_ref");
}

#define TESSERA_REFERENCE(Real)                                                                             \
  template void run_fwd_ref(const BasicArgs<Real>&, const BasicOutputs<Real>&, cudaStream_t);               \
  template void run_bwd_ref(const BasicArgs<Real>&, const BasicGradients<Real>&, const float*, const Real*, \
                            const Real*, cudaStream_t);
TESSERA_REFERENCE(bf16)
TESSERA_REFERENCE(float)
#undef TESSERA_REFERENCE

}  // namespace tessera::attention
