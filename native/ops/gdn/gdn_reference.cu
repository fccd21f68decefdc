// Reference kernels of the gated delta rule: any head sizes K, V up to 128, one token at a time, fp32
// throughout.
//
//   S' = exp(gamma_t) S_{t-1},  delta = beta_t (v_t - S'^T k_t),  S_t = S' + k_t delta^T,  o_t = s S_t^T q_t
//
// A block per (sequence, value head), a thread per value column, which keeps its column of the state in local
// memory. Backward walks the tokens in reverse and recomputes S_t from the state stored at its chunk's start.
// Ar is computed for the interface's sake and not used. Slow; for tiny models and for checking the others.
#include "ops/gdn/gdn_device.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kMaxHead = 128;

template <typename Real>
__global__ void gdn_kkt_fwd_ref_kernel(BasicArgs<Real> args, float* g_out, float* beta_out, Real* ar_out,
                                       const Real* proj, const float* a_log, const float* dt_bias,
                                       size_t proj_dim, size_t a_offset, size_t b_offset) {
  __shared__ float x[kChunk][kChunk + 1], beta[kChunk];
  const int column = threadIdx.x, head = blockIdx.x, key_head = head / args.group;
  const Chunk chunk = args.chunk[blockIdx.y];
  const size_t slot = args.slot(blockIdx.y, head);
  if (chunk.count == 0) {
    g_out[slot * kChunk + column] = 0.0f;
    beta_out[slot * kChunk + column] = 0.0f;
    return;
  }
  float total = 0.0f;
  for (int i = 0; i <= column && i < chunk.count; ++i) {
    const float a = static_cast<float>(proj[(chunk.begin + i) * proj_dim + a_offset + head]) + dt_bias[head];
    total -= expf(a_log[head]) * (a > 20.0f ? a : log1pf(expf(a)));
  }
  const bool valid = column < chunk.count;
  beta[column] =
      valid ? 1.0f / (1.0f +
                      expf(-static_cast<float>(proj[(chunk.begin + column) * proj_dim + b_offset + head])))
            : 0.0f;
  g_out[slot * kChunk + column] = total;
  beta_out[slot * kChunk + column] = beta[column];
  __syncthreads();
  for (int i = 0; i < kChunk; ++i) {
    float sum = 0.0f;
    if (i < chunk.count) {
      const Real* ki = args.k_row(chunk.begin + i, key_head);
      for (int m = column; m < i; ++m) {
        const Real* km = args.k_row(chunk.begin + m, key_head);
        float dot = 0.0f;
        for (int d = 0; d < args.key_dim; ++d) dot += static_cast<float>(ki[d]) * static_cast<float>(km[d]);
        sum += dot * x[m][column];
      }
    }
    x[i][column] = (i == column ? 1.0f : 0.0f) - beta[i] * sum;
    ar_out[(slot * kChunk + i) * kChunk + column] = static_cast<Real>(x[i][column]);
  }
}

// q, k (shared, K floats) of one token.
template <typename Real>
__device__ void load_token(const BasicArgs<Real>& args, int token, int key_head, float* q, float* k) {
  __syncthreads();
  for (int d = threadIdx.x; d < args.key_dim; d += blockDim.x) {
    q[d] = static_cast<float>(args.q_row(token, key_head)[d]);
    k[d] = static_cast<float>(args.k_row(token, key_head)[d]);
  }
  __syncthreads();
}

// One step of the recurrence for a column of the state: `column` becomes S_t; returns v - S'^T k, `decayed`
// (may be null) is left as S'.
__device__ float advance(int key_dim, float* column, float* decayed, const float* k, float v, float alpha,
                         float beta) {
  float error = v;
  for (int d = 0; d < key_dim; ++d) {
    column[d] *= alpha;
    if (decayed) decayed[d] = column[d];
    error -= column[d] * k[d];
  }
  for (int d = 0; d < key_dim; ++d) column[d] += k[d] * (beta * error);
  return error;
}

__device__ float step_decay(const float* g, int i) { return i == 0 ? g[0] : g[i] - g[i - 1]; }

template <typename Real>
__global__ void gdn_fwd_ref_kernel(BasicArgs<Real> args, Real* o, Real* state) {
  __shared__ float q[kMaxHead], k[kMaxHead];
  const int v_index = threadIdx.x, head = blockIdx.x, key_head = head / args.group;
  const bool active = v_index < args.value_dim;
  const float scale = rsqrtf(static_cast<float>(args.key_dim));
  float s[kMaxHead] = {};
  const ChunkRange range = args.seq_chunk[blockIdx.y];
  for (int c = range.begin; c < range.end; ++c) {
    const Chunk chunk = args.chunk[c];
    const size_t slot = args.slot(c, head);
    const float *g = args.g + slot * kChunk, *beta = args.beta + slot * kChunk;
    if (state && active) {
      for (int d = 0; d < args.key_dim; ++d)
        state[(slot * args.key_dim + d) * args.value_dim + v_index] = static_cast<Real>(s[d]);
    }
    for (int i = 0; i < chunk.count; ++i) {
      const int token = chunk.begin + i;
      load_token(args, token, key_head, q, k);
      if (!active) continue;
      advance(args.key_dim, s, nullptr, k, static_cast<float>(args.v_row(token, head)[v_index]),
              expf(step_decay(g, i)), beta[i]);
      float out = 0.0f;
      for (int d = 0; d < args.key_dim; ++d) out += s[d] * q[d];
      o[token * args.values + head * args.value_dim + v_index] = static_cast<Real>(scale * out);
    }
  }
}

template <typename Real>
__global__ void gdn_bwd_ref_kernel(BasicArgs<Real> args, BasicGradients<Real> out, const Real* d_o,
                                   const Real* state) {
  __shared__ float q[kMaxHead], k[kMaxHead], scratch[33];
  const int v_index = threadIdx.x, head = blockIdx.x, key_head = head / args.group;
  const bool active = v_index < args.value_dim;
  const float scale = rsqrtf(static_cast<float>(args.key_dim));
  float s[kMaxHead], decayed[kMaxHead], ds[kMaxHead] = {};
  const ChunkRange range = args.seq_chunk[blockIdx.y];
  for (int c = range.end - 1; c >= range.begin; --c) {
    const Chunk chunk = args.chunk[c];
    const size_t slot = args.slot(c, head);
    const float *g = args.g + slot * kChunk, *beta = args.beta + slot * kChunk;
    for (int i = threadIdx.x; i < kChunk; i += blockDim.x) {
      out.d_gamma[slot * kChunk + i] = 0.0f;
      out.d_beta[slot * kChunk + i] = 0.0f;
    }
    for (int i = chunk.count - 1; i >= 0; --i) {
      for (int d = 0; d < args.key_dim; ++d) {
        s[d] =
            active ? static_cast<float>(state[(slot * args.key_dim + d) * args.value_dim + v_index]) : 0.0f;
      }
      float error = 0.0f;
      for (int m = 0; m <= i; ++m) {
        load_token(args, chunk.begin + m, key_head, q, k);
        const float v = active ? static_cast<float>(args.v_row(chunk.begin + m, head)[v_index]) : 0.0f;
        error = advance(args.key_dim, s, decayed, k, v, expf(step_decay(g, m)), beta[m]);
      }
      const int token = chunk.begin + i;
      const float dout =
          active ? scale * static_cast<float>(d_o[token * args.values + head * args.value_dim + v_index])
                 : 0.0f;
      float d_delta = 0.0f;
      for (int d = 0; d < args.key_dim; ++d) {
        ds[d] += q[d] * dout;
        d_delta += ds[d] * k[d];
      }
      const float dv = beta[i] * d_delta;
      const size_t row = (static_cast<size_t>(token) * args.value_heads + head) * args.key_dim;
      float decay_part = 0.0f;
      for (int d = 0; d < args.key_dim; ++d) {
        const float dq = block_sum(active ? s[d] * dout : 0.0f, scratch);
        __syncthreads();
        const float dk = block_sum(active ? ds[d] * beta[i] * error - decayed[d] * dv : 0.0f, scratch);
        __syncthreads();
        if (threadIdx.x == 0) {
          out.dq[row + d] = static_cast<Real>(dq);
          out.dk[row + d] = static_cast<Real>(dk);
        }
        ds[d] -= k[d] * dv;
        decay_part += ds[d] * decayed[d];
        ds[d] *= expf(step_decay(g, i));
      }
      decay_part = block_sum(active ? decay_part : 0.0f, scratch);
      __syncthreads();
      const float d_beta = block_sum(active ? d_delta * error : 0.0f, scratch);
      if (threadIdx.x == 0) {
        out.d_gamma[slot * kChunk + i] = decay_part;
        out.d_beta[slot * kChunk + i] = d_beta;
      }
      if (active) out.dv[token * args.values + head * args.value_dim + v_index] = static_cast<Real>(dv);
    }
  }
}

unsigned threads_of(int value_dim) { return (value_dim + 31) / 32 * 32; }

}  // namespace

template <typename Real>
void run_kkt_fwd_ref(const BasicArgs<Real>& args, float* g, float* beta, Real* ar, const Real* proj,
                     const float* a_log, const float* dt_bias, const GdnShape& shape, int num_chunk,
                     cudaStream_t stream) {
  gdn_kkt_fwd_ref_kernel<<<dim3(args.value_heads, num_chunk), kChunk, 0, stream>>>(
      args, g, beta, ar, proj, a_log, dt_bias, shape.proj_dim(), shape.a_offset(), shape.b_offset());
  check_launch("gdn_kkt_fwd_ref");
}

template <typename Real>
void run_fwd_ref(const BasicArgs<Real>& args, Real* o, Real* state, int num_seq, cudaStream_t stream) {
  gdn_fwd_ref_kernel<<<dim3(args.value_heads, num_seq), threads_of(args.value_dim), 0, stream>>>(args, o,
                                                                                                 state);
  check_launch("gdn_fwd_ref");
}

template <typename Real>
void run_bwd_ref(const BasicArgs<Real>& args, const BasicGradients<Real>& out, const Real* d_o,
                 const Real* state, int num_seq, cudaStream_t stream) {
  gdn_bwd_ref_kernel<<<dim3(args.value_heads, num_seq), threads_of(args.value_dim), 0, stream>>>(args, out,
                                                                                                 d_o, state);
  check_launch("gdn_bwd_ref");
}

#define TESSERA_REFERENCE(Real)                                                                            \
  template void run_kkt_fwd_ref(const BasicArgs<Real>&, float*, float*, Real*, const Real*, const float*,  \
                                const float*, const GdnShape&, int, cudaStream_t);                         \
  template void run_fwd_ref(const BasicArgs<Real>&, Real*, Real*, int, cudaStream_t);                      \
  template void run_bwd_ref(const BasicArgs<Real>&, const BasicGradients<Real>&, const Real*, const Real*, \
                            int, cudaStream_t);
TESSERA_REFERENCE(bf16)
TESSERA_REFERENCE(float)
#undef TESSERA_REFERENCE

}  // namespace tessera::gdn
