#include "ops/reference/reference_device.cuh"

namespace tessera::reference {
namespace {

// Channel c of the causal convolution at token t; taps before the sequence's start read zero.
template <typename Real>
__device__ float convolved(const Real* proj, const float* conv_w, const i32* pos, i64 t, i64 c,
                           const Gdn& s) {
  float sum = 0.0f;
  for (int j = 0; j < s.conv_taps; ++j) {
    const int back = s.conv_taps - 1 - j;
    if (pos[t] >= back)
      sum += conv_w[c * s.conv_taps + j] * static_cast<float>(proj[(t - back) * s.proj_dim() + c]);
  }
  return sum;
}

// The heads of a row of qkv: blockIdx.y counts q heads, k heads, v heads.
struct Head {
  i64 first;  // channel
  int dim;
  bool normed;
};
__device__ Head head_of(const Gdn& s, int index) {
  if (index < 2 * s.key_heads) return {i64{index} * s.key_dim, s.key_dim, true};
  return {2 * s.keys() + i64{index - 2 * s.key_heads} * s.value_dim, s.value_dim, false};
}

__device__ float l2_scale(float square_sum) { return 1.0f / sqrtf(square_sum + 1e-6f); }

template <typename Real>
__global__ void prep_fwd_kernel(Real* qkv, const Real* proj, const float* conv_w, const i32* pos, Gdn s) {
  extern __shared__ float row[];
  __shared__ float scratch[33];
  const i64 t = blockIdx.x;
  const Head head = head_of(s, blockIdx.y);
  float square = 0.0f;
  for (int i = threadIdx.x; i < head.dim; i += kThreads) {
    row[i] = exact_silu(convolved(proj, conv_w, pos, t, head.first + i, s));
    square += row[i] * row[i];
  }
  const float scale = head.normed ? l2_scale(block_sum(square, scratch)) : 1.0f;
  for (int i = threadIdx.x; i < head.dim; i += kThreads)
    qkv[t * s.conv_dim() + head.first + i] = static_cast<Real>(row[i] * scale);
}

// dp [T, CQ]: the gradient of the convolution's output.
template <typename Real>
__global__ void conv_output_grad_kernel(float* dp, PrepBackward<Real> p, const i32* pos, Gdn s) {
  extern __shared__ float row[];  // silu | gradient
  __shared__ float scratch[33];
  const i64 t = blockIdx.x;
  const int index = blockIdx.y;
  const Head head = head_of(s, index);
  float *silu = row, *d = row + head.dim;
  float square = 0.0f, dot = 0.0f;
  for (int i = threadIdx.x; i < head.dim; i += kThreads) {
    silu[i] = exact_silu(convolved(p.proj, p.conv_w, pos, t, head.first + i, s));
    if (head.normed) {
      const Real* up = (index < s.key_heads ? p.dq : p.dk) + t * s.value_heads * s.key_dim;
      d[i] = 0.0f;
      for (int g = 0; g < s.group(); ++g)
        d[i] += static_cast<float>(up[(index % s.key_heads * s.group() + g) * s.key_dim + i]);
    } else {
      d[i] = static_cast<float>(p.dv[t * s.values() + head.first - 2 * s.keys() + i]);
    }
    square += silu[i] * silu[i];
    dot += silu[i] * d[i];
  }
  const float scale = head.normed ? l2_scale(block_sum(square, scratch)) : 1.0f;
  __syncthreads();
  const float pull = head.normed ? block_sum(dot, scratch) * scale * scale : 0.0f;
  for (int i = threadIdx.x; i < head.dim; i += kThreads) {
    const float slope = exact_silu_slope(convolved(p.proj, p.conv_w, pos, t, head.first + i, s));
    dp[t * s.conv_dim() + head.first + i] = scale * (d[i] - silu[i] * pull) * slope;
  }
}

template <typename Real>
__global__ void conv_input_grad_kernel(Real* dproj, const float* dp, const float* conv_w, const i32* seq_end,
                                       i64 T, Gdn s) {
  const i64 CQ = s.conv_dim();
  for (i64 n = global_thread(); n < T * CQ; n += all_threads()) {
    const i64 t = n / CQ, c = n % CQ;
    float sum = 0.0f;
    for (int j = 0; j < s.conv_taps; ++j) {
      const i64 later = t + s.conv_taps - 1 - j;
      if (later < seq_end[t]) sum += conv_w[c * s.conv_taps + j] * dp[later * CQ + c];
    }
    dproj[t * s.proj_dim() + c] = static_cast<Real>(sum);
  }
}

// A block a head: the b and a slices of dproj, and the sums over all tokens of the two gate parameters.
template <typename Real>
__global__ void gates_bwd_kernel(PrepBackward<Real> p, const Chunk* chunk, int chunks, Gdn s) {
  __shared__ double sums[2][kThreads];
  const int h = blockIdx.x;
  const float rate = -expf(p.a_log[h]);
  double sum_a_log = 0.0, sum_dt = 0.0;
  for (i64 n = threadIdx.x; n < i64{chunks} * kChunk; n += kThreads) {
    const Chunk c = chunk[n / kChunk];
    const int i = static_cast<int>(n % kChunk);
    if (i >= c.count) continue;
    const i64 gate = (n / kChunk * s.value_heads + h) * kChunk + i;
    const i64 row = (i64{c.begin} + i) * s.proj_dim();
    const float z = static_cast<float>(p.proj[row + s.a_offset() + h]) + p.dt_bias[h];
    const float da = p.d_gamma[gate] * rate * exact_sigmoid(z);
    p.dproj[row + s.a_offset() + h] = static_cast<Real>(da);
    p.dproj[row + s.b_offset() + h] =
        static_cast<Real>(p.d_beta[gate] * p.beta[gate] * (1.0f - p.beta[gate]));
    sum_a_log += p.d_gamma[gate] * rate * exact_softplus(z);
    sum_dt += da;
  }
  sums[0][threadIdx.x] = sum_a_log;
  sums[1][threadIdx.x] = sum_dt;
  __syncthreads();
  if (threadIdx.x > 1) return;
  double total = 0.0;
  for (int i = 0; i < kThreads; ++i) total += sums[threadIdx.x][i];
  (threadIdx.x == 0 ? p.d_a_log : p.d_dt_bias)[h] += static_cast<float>(total);
}

// What token t adds to the gradient of tap n % taps of channel n / taps.
template <typename Real>
struct TapTerm {
  const float* dp;
  const Real* proj;
  const i32* pos;
  Gdn s;
  __device__ float operator()(i64 t, i64 n) const {
    const i64 c = n / s.conv_taps, back = s.conv_taps - 1 - n % s.conv_taps;
    if (pos[t] < back) return 0.0f;
    return dp[t * s.conv_dim() + c] * static_cast<float>(proj[(t - back) * s.proj_dim() + c]);
  }
};

dim3 by_head(i64 T, const GdnShape& s) {
  return dim3(static_cast<unsigned>(T), static_cast<unsigned>(2 * s.key_heads + s.value_heads));
}
size_t widest_head(const GdnShape& s) {
  return static_cast<size_t>(std::max(s.key_dim, s.value_dim)) * sizeof(float);
}

}  // namespace

template <typename Real>
void gdn_prep_fwd(Real* qkv, const Real* proj, const float* conv_w, const Batch& b, const GdnShape& s,
                  cudaStream_t stream) {
  prep_fwd_kernel<<<by_head(b.T, s), kThreads, widest_head(s), stream>>>(qkv, proj, conv_w, b.pos, s);
  check_launch("gdn_prep_fwd (reference)");
}

template <typename Real>
void gdn_prep_bwd(const PrepBackward<Real>& p, const Batch& b, const GdnShape& s, cudaStream_t stream) {
  const i64 T = b.T, CQ = s.conv_dim();
  float* dp = p.scratch;
  conv_output_grad_kernel<<<by_head(T, s), kThreads, 2 * widest_head(s), stream>>>(dp, p, b.pos, s);
  conv_input_grad_kernel<<<1024, kThreads, 0, stream>>>(p.dproj, dp, p.conv_w, b.seq_end, T, s);
  sum_columns(p.d_conv_w, T, CQ * s.conv_taps, dp + T * CQ, TapTerm<Real>{dp, p.proj, b.pos, s}, stream);
  gates_bwd_kernel<<<s.value_heads, kThreads, 0, stream>>>(p, b.chunk, b.num_chunk, s);
  check_launch("gdn_prep_bwd (reference)");
}

template void gdn_prep_fwd(bf16*, const bf16*, const float*, const Batch&, const GdnShape&, cudaStream_t);
template void gdn_prep_fwd(float*, const float*, const float*, const Batch&, const GdnShape&, cudaStream_t);
template void gdn_prep_bwd(const PrepBackward<bf16>&, const Batch&, const GdnShape&, cudaStream_t);
template void gdn_prep_bwd(const PrepBackward<float>&, const Batch&, const GdnShape&, cudaStream_t);

}  // namespace tessera::reference
