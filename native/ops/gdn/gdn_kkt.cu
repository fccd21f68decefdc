// Gates and the inverse of the gated delta rule: one block per (chunk, key head).
//
//   beta = sigmoid(b), gamma = -exp(a_log) softplus(a + dt_bias), G = inclusive sum of gamma within the chunk
//   Ar   = (I + strict_lower(beta K K^T))^-1   per value head, [64, 64], rows of padding are rows of I
//
// K K^T comes from the tensor cores once per key head (bf16 operands, fp32 sums). With L = strict_lower(beta
// K K^T) and X = (I + L)^-1, the four diagonal blocks of 16 rows of X follow by forward substitution in fp32,
// a lane a column; then, twice over, two neighbouring blocks and what lies below the first make one:
//   [A 0; L B]^-1 = [A^-1 0; -B^-1 L A^-1 B^-1]
// by tensor-core products whose fp32 operands are split into two bf16 each (three products, 16 bits kept).
// Outputs overwrite; gates of unused chunks become zero. Reference: gdn_reference.cu; check:
// tests/native/cuda.
#include "ops/gdn/gdn_device.cuh"
#include "ops/gdn/gdn_kernels.h"

namespace tessera::gdn {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kStride = kChunk + 4;  // floats a row of K K^T and of X: 16-byte rows, shifted banks
constexpr int kSquareBytes = kChunk * kStride * 4;

// Shared memory: X in the place of K, which is read before; K K^T; beta of every head.
static_assert(kSquareBytes >= kTileBytes);
int shared_bytes(int group) { return 2 * kSquareBytes + group * kChunk * 4; }

// x = high + low, both bf16, for two neighbouring elements.
struct Split {
  u32 high, low;
};
__device__ __forceinline__ Split split(float x, float y) {
  const u32 high = pack_bf16(x, y);
  return {high, pack_bf16(x - low_float(high), y - high_float(high))};
}
struct SplitFrag {
  Frag high, low;
};
__device__ __forceinline__ void put(SplitFrag& f, int i, float x, float y) {
  const Split s = split(x, y);
  f.high.r[i] = s.high;
  f.low.r[i] = s.low;
}

// Left operand: 16 rows and columns of a square of kStride floats a row.
__device__ __forceinline__ SplitFrag left_of(const float* square, int row0, int column0, int lane) {
  SplitFrag f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = row0 + lane / 4 + i % 2 * 8, column = column0 + lane % 4 * 2 + i / 2 * 8;
    const float2 v = *reinterpret_cast<const float2*>(square + row * kStride + column);
    put(f, i, v.x, v.y);
  }
  return f;
}
// The same from two adjacent n8 tiles of sums.
__device__ __forceinline__ SplitFrag left_of(const float (&c0)[4], const float (&c1)[4]) {
  SplitFrag f;
  put(f, 0, c0[0], c0[1]);
  put(f, 1, c0[2], c0[3]);
  put(f, 2, c1[0], c1[1]);
  put(f, 3, c1[2], c1[3]);
  return f;
}
// c[16, 8] += a b; b: 16 rows and 8 columns of a square, rows times scale where it is not null.
__device__ __forceinline__ void multiply_add(float (&c)[4], const SplitFrag& a, const float* square, int row0,
                                             int column0, const float* scale, int lane) {
  Split b[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = row0 + lane % 4 * 2 + 8 * i;
    const float* at = square + row * kStride + column0 + lane / 4;
    float x = at[0], y = at[kStride];
    if (scale) x *= scale[row], y *= scale[row + 1];
    b[i] = split(x, y);
  }
  mma(c, a.low, b[0].high, b[1].high);
  mma(c, a.high, b[0].low, b[1].low);
  mma(c, a.high, b[0].high, b[1].high);
}

// Rows row0.. of the inverse's diagonal block of 16: lane j < 16 has column j.
__device__ __forceinline__ void invert_diagonal(float* inverse, const float* gram, const float* beta,
                                                int row0, int lane) {
  float x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float4* row = reinterpret_cast<const float4*>(gram + (row0 + i) * kStride + row0);
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int m4 = 0; m4 * 4 < i; ++m4) {
      const float4 l = row[m4];
      const float part[4] = {l.x, l.y, l.z, l.w};
#pragma unroll
      for (int d = 0; d < 4; ++d)
        if (m4 * 4 + d < i) sum[d] = fmaf(part[d], x[m4 * 4 + d], sum[d]);
    }
    x[i] = (i == lane ? 1.0f : 0.0f) - beta[row0 + i] * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
    if (lane < 16) inverse[(row0 + i) * kStride + row0 + lane] = x[i];
  }
}

// A warp's part of -B^-1 L A^-1, [16 rows, 8 kTiles columns] at (row0, column0) of the inverse. A and B are
// the kSize x kSize blocks of it before and after `middle`. Zeros above the diagonal are left out.
template <int kSize, int kTiles>
__device__ __forceinline__ void fill_below(float* inverse, const float* gram, const float* beta, int middle,
                                           int row0, int column0, int lane) {
  constexpr int kSteps = kSize / 16;
  const int first_column = middle - kSize;
  float y[2 * kSteps][4] = {};  // B^-1 L
#pragma unroll
  for (int ks = 0; ks < kSteps; ++ks) {
    const int from = middle + 16 * ks;
    if (from > row0) break;
    const SplitFrag a = left_of(inverse, row0, from, lane);
#pragma unroll
    for (int n = 0; n < 2 * kSteps; ++n) multiply_add(y[n], a, gram, from, first_column + 8 * n, beta, lane);
  }
  float out[kTiles][4] = {};
#pragma unroll
  for (int ks = 0; ks < kSteps; ++ks) {
    const int from = first_column + 16 * ks;
    if (from + 16 <= column0) continue;
    const SplitFrag a = left_of(y[2 * ks], y[2 * ks + 1]);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) multiply_add(out[n], a, inverse, from, column0 + 8 * n, nullptr, lane);
  }
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    float* at = inverse + (row0 + lane / 4) * kStride + column0 + 8 * n + lane % 4 * 2;
    *reinterpret_cast<float2*>(at) = make_float2(-out[n][0], -out[n][1]);
    *reinterpret_cast<float2*>(at + 8 * kStride) = make_float2(-out[n][2], -out[n][3]);
  }
}

// This warp's 16 rows of the inverse, to bf16.
__device__ __forceinline__ void store_rows(bf16* ar, const float* inverse, int warp, int lane) {
  const int chunk8 = lane % 8;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const int row = 16 * warp + 4 * part + lane / 8;
    uint4 v = make_uint4(0, 0, 0, 0);
    if (chunk8 / 2 <= warp) {
      const float4* at = reinterpret_cast<const float4*>(inverse + row * kStride + 8 * chunk8);
      const float4 a = at[0], b = at[1];
      v = make_uint4(pack_bf16(a.x, a.y), pack_bf16(a.z, a.w), pack_bf16(b.x, b.y), pack_bf16(b.z, b.w));
    }
    store_global16(ar + row * kChunk + 8 * chunk8, v);
  }
}

__global__ void __launch_bounds__(kThreads, 6)
    gdn_kkt_fwd_kernel(Args args, float* g_out, float* beta_out, bf16* ar_out, const bf16* proj,
                       const float* a_log, const float* dt_bias, size_t proj_dim, size_t a_offset,
                       size_t b_offset) {
  extern __shared__ __align__(1024) unsigned char shared[];
  float* inverse = reinterpret_cast<float*>(shared);
  float* gram = reinterpret_cast<float*>(shared + kSquareBytes);
  float* betas = reinterpret_cast<float*>(shared + 2 * kSquareBytes);

  const int chunk_index = blockIdx.y, key_head = blockIdx.x, first_head = key_head * args.group;
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
  const Tile<kHead> k_tile(shared_address(shared), lane);
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
    betas[j * kChunk + lane] = b[0];
    betas[j * kChunk + lane + 32] = b[1];
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
    float* row = gram + (16 * warp + g) * kStride + 2 * q;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      *reinterpret_cast<float2*>(row + 8 * n) = make_float2(c[n][0], c[n][1]);
      *reinterpret_cast<float2*>(row + 8 * n + 8 * kStride) = make_float2(c[n][2], c[n][3]);
    }
  }
  __syncthreads();

  for (int j = 0; j < args.group; ++j) {
    const float* beta = betas + j * kChunk;
    invert_diagonal(inverse, gram, beta, 16 * warp, lane);
    __syncthreads();
    const int pair = warp / 2, half = warp % 2;
    fill_below<16, 1>(inverse, gram, beta, 32 * pair + 16, 32 * pair + 16, 32 * pair + 8 * half, lane);
    __syncthreads();
    fill_below<32, 2>(inverse, gram, beta, 32, 32 + 16 * pair, 16 * half, lane);
    __syncthreads();
    store_rows(ar_out + args.slot(chunk_index, first_head + j) * kChunk * kChunk, inverse, warp, lane);
    __syncwarp();
  }
}

}  // namespace

void run_kkt_fwd(const Args& args, float* g, float* beta, bf16* ar, const bf16* proj, const float* a_log,
                 const float* dt_bias, const GdnShape& shape, int num_chunk, cudaStream_t stream) {
  const int shared = shared_bytes(args.group);
  check_cuda(cudaFuncSetAttribute(gdn_kkt_fwd_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
             "gdn_kkt_fwd");
  gdn_kkt_fwd_kernel<<<dim3(shape.key_heads, num_chunk), kThreads, shared, stream>>>(
      args, g, beta, ar, proj, a_log, dt_bias, shape.proj_dim(), shape.a_offset(), shape.b_offset());
  check_launch("gdn_kkt_fwd");
}

}  // namespace tessera::gdn
