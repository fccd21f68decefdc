// Gates and the inverse of the gated delta rule: one block per (chunk, key head).
//
//   beta = sigmoid(b), gamma = -exp(a_log) softplus(a + dt_bias), G = inclusive sum of gamma within the chunk
//   Ar   = (I + strict_lower(beta K K^T))^-1   per value head, [64, 64], rows of padding are rows of I
//
// K K^T comes from the tensor cores once per key head (bf16 operands, fp32 sums). The inverse is a forward
// substitution in fp32, a lane per column: x_i = e_i - beta_i sum_{m<i} (K K^T)_im x_m. A warp solves either
// the left 32 columns (64 rows) or the right 32 (rows 32..63, the rest is zero), so that no barrier is needed
// between heads. Outputs overwrite; gates of unused chunks become zero. Reference: gdn_reference.cu; check:
// tests/native/cuda.
#include "ops/gdn/gdn_device.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kGramStride = kChunk + 4;  // floats a row of K K^T: 16-byte rows, shifted banks

// Column `lane` + kFirst of the inverse, rows kFirst..63. gram: K K^T [64, kGramStride].
template <int kFirst>
__device__ void solve_columns(bf16* ar, const float* gram, const float* beta, int lane) {
  constexpr int kRows = kChunk - kFirst;
  float x[kRows];
  lane = opaque(lane);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const float4* row = reinterpret_cast<const float4*>(gram + (kFirst + i) * kGramStride + kFirst);
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int m4 = 0; m4 * 4 < i; ++m4) {
      const float4 l = row[m4];
      const float part[4] = {l.x, l.y, l.z, l.w};
#pragma unroll
      for (int d = 0; d < 4; ++d)
        if (m4 * 4 + d < i) sum[d] = fmaf(part[d], x[m4 * 4 + d], sum[d]);
    }
    x[i] = (i == lane ? 1.0f : 0.0f) - beta[kFirst + i] * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
    ar[(kFirst + i) * kChunk + kFirst + lane] = __float2bfloat16_rn(x[i]);
  }
}

__global__ void __launch_bounds__(kThreads, 3)
    gdn_kkt_fwd_kernel(Args args, float* g_out, float* beta_out, bf16* ar_out, const bf16* proj,
                       const float* a_log, const float* dt_bias, size_t proj_dim, size_t a_offset,
                       size_t b_offset) {
  __shared__ alignas(1024) unsigned char k_bytes[kTileBytes];
  __shared__ alignas(16) float gram[kChunk * kGramStride];
  __shared__ float beta[kWarps][kChunk];

  const int chunk_index = blockIdx.x, key_head = blockIdx.y, first_head = key_head * args.group;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const Chunk chunk = args.chunk[chunk_index];
  if (chunk.count == 0) {
    for (int i = thread; i < args.group * kChunk; i += kThreads) {
      const size_t at = args.slot(chunk_index, first_head) * kChunk + i;
      g_out[at] = 0.0f;
      beta_out[at] = 0.0f;
    }
    return;
  }
  const Tile<kHead> k_tile(shared_address(k_bytes), lane);
  load_tile<kChunk, kThreads>(k_tile, args.k_row(chunk.begin, key_head), args.conv_dim, chunk.count, thread);
  copy_async_commit();

  // Gates: a warp per head; lane l holds tokens l and l + 32.
  for (int j = warp; j < args.group; j += kWarps) {
    const int head = first_head + j;
    float gamma[2], b[2];
    const float rate = -expf(a_log[head]), bias = dt_bias[head];
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const int row = lane + part * 32;
      gamma[part] = 0.0f;
      b[part] = 0.0f;
      if (row < chunk.count) {
        const bf16* p = proj + (chunk.begin + row) * proj_dim;
        gamma[part] = rate * softplus(__bfloat162float(p[a_offset + head]) + bias);
        b[part] = sigmoid(__bfloat162float(p[b_offset + head]));
      }
    }
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const float low = __shfl_up_sync(0xffffffffu, gamma[0], step);
      const float high = __shfl_up_sync(0xffffffffu, gamma[1], step);
      if (lane >= step) {
        gamma[0] += low;
        gamma[1] += high;
      }
    }
    gamma[1] += __shfl_sync(0xffffffffu, gamma[0], 31);
    // The scan adds zeros in another order behind the last token; padding repeats that token's sum exactly.
    const int last = chunk.count - 1;
    const float at_last = __shfl_sync(0xffffffffu, last < 32 ? gamma[0] : gamma[1], last % 32);
    if (lane > last) gamma[0] = at_last;
    if (lane + 32 > last) gamma[1] = at_last;
    const size_t at = args.slot(chunk_index, head) * kChunk + lane;
    g_out[at] = gamma[0];
    g_out[at + 32] = gamma[1];
    beta_out[at] = b[0];
    beta_out[at + 32] = b[1];
  }

  copy_async_wait<0>();
  __syncthreads();
  {
    const int g = lane / 4, q = lane % 4;
    float c[8][4] = {};
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) {
      const Frag a = k_tile.a(16 * warp, 16 * ks);
#pragma unroll
      for (int n = 0; n < 4; ++n)
        if (n <= warp) mma_pair(c[2 * n], c[2 * n + 1], a, k_tile.b_trans(16 * ks, 16 * n));
    }
    float* row = gram + (16 * warp + g) * kGramStride + 2 * q;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      *reinterpret_cast<float2*>(row + 8 * n) = make_float2(c[n][0], c[n][1]);
      *reinterpret_cast<float2*>(row + 8 * n + 8 * kGramStride) = make_float2(c[n][2], c[n][3]);
    }
  }
  __syncthreads();

  // Units: the left halves of all heads (long), then the right halves (short). The first warp to work differs
  // from block to block, so that the long ones spread over the schedulers.
  const int role = (warp + blockIdx.x + blockIdx.y) % kWarps;
  for (int unit = role; unit < 2 * args.group; unit += kWarps) {
    const bool left = unit < args.group;
    const size_t slot = args.slot(chunk_index, first_head + (left ? unit : unit - args.group));
    bf16* ar = ar_out + slot * kChunk * kChunk;
    // Written by another warp of this block before the barriers above.
    beta[warp][lane] = beta_out[slot * kChunk + lane];
    beta[warp][lane + 32] = beta_out[slot * kChunk + lane + 32];
    __syncwarp();
    if (left) {
      solve_columns<0>(ar, gram, beta[warp], lane);
    } else {
#pragma unroll
      for (int i = 0; i < 32; ++i) ar[i * kChunk + 32 + lane] = __float2bfloat16_rn(0.0f);
      solve_columns<32>(ar, gram, beta[warp], lane);
    }
    __syncwarp();
  }
}

}  // namespace

void run_kkt_fwd(const Args& args, float* g, float* beta, bf16* ar, const bf16* proj, const float* a_log,
                 const float* dt_bias, const GdnShape& shape, int num_chunk, cudaStream_t stream) {
  gdn_kkt_fwd_kernel<<<dim3(num_chunk, shape.key_heads), kThreads, 0, stream>>>(
      args, g, beta, ar, proj, a_log, dt_bias, shape.proj_dim(), shape.a_offset(), shape.b_offset());
  check_launch("gdn_kkt_fwd");
}

}  // namespace tessera::gdn
