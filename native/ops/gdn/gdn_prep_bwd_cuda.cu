#include <algorithm>

#include "ops/gdn/gdn_prep_tile.cuh"
#include "ops/tensor_core.cuh"

namespace tessera {
namespace {

using namespace prep;

// A warp walks a segment of one head, four tokens at a time, a lane four channels: their convolution's
// gradient d_pre, from which du of the tokens three before them and the taps' gradient follow. What it reads
// arrives in a ring in shared memory, asynchronously; past the segment's end it computes d_pre of three
// tokens more. All sums are the same whether a token's neighbours belong to its sequence or not.
constexpr int kBatch = 4;
constexpr int kSegment = 64;  // tokens of a warp
constexpr int kWalkers = 4;   // warps of a block: three blocks an SM have 168 registers a thread
constexpr int kBlockTokens = kWalkers * kSegment;
constexpr int kRowBytes = kHead * 2, kRowsBytes = kBatch * kRowBytes;
constexpr int kMostGroup = 4;  // value heads a key head may have: what fits 99 KB

// A stage of a warp's ring: inputs u of a batch, then its upstream gradients of each value head that reads
// the head.
__host__ __device__ constexpr int stages(int group) { return group <= 2 ? 3 : 2; }
__host__ __device__ constexpr int ring_bytes(int group) { return stages(group) * (1 + group) * kRowsBytes; }

// Where a warp stands.
struct Segment {
  const bf16* u;         // of the head, row 0
  const bf16* upstream;  // of the first value head that reads it, row 0
  bf16* du;
  const i32* pos;
  i64 row, values;  // elements a row of proj, and of dq, dk and dv
  i32 begin, end, T;
  unsigned char* ring;
  int lane;

  // How many inputs before it a token reaches, at most 3; -1 past the last token.
  __device__ int reach(i32 t) const { return t < 0 || t >= T ? -1 : min(pos[t], kHalo); }
};

template <bool kWide, int kCopies, int kStageBytes>
__device__ __forceinline__ void load_batch(const Segment& at, int stage, i32 first) {
  unsigned char* to = at.ring + stage * kStageBytes;
  const int chunk = at.lane % 16, half = at.lane / 16;
#pragma unroll
  for (int pair = 0; pair < kBatch / 2; ++pair) {
    const int i = 2 * pair + half;
    const bool valid = first + i < at.T;
    const i64 t = valid ? first + i : 0;
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(to + i * kRowBytes + chunk * 16));
    if constexpr (kWide) {
      copy_async16(place, at.u + t * at.row + chunk * 8, valid);
    } else {
#pragma unroll
      for (int word = 0; word < 4; ++word)
        copy_async4(place + 4 * word, at.u + t * at.row + chunk * 8 + 2 * word, valid);
    }
#pragma unroll
    for (int g = 0; g < kCopies; ++g)
      copy_async16(place + (1 + g) * kRowsBytes, at.upstream + t * at.values + g * kHead + chunk * 8, valid);
  }
}

// Sums of eight values over the warp: lane l holds that of value l / 4.
__device__ __forceinline__ float sum_of_eight(float (&v)[8], int lane) {
#pragma unroll
  for (int step = 16, count = 4; step >= 4; step /= 2, count /= 2) {
    const bool upper = lane & step;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float kept = upper ? v[i + count] : v[i], sent = upper ? v[i] : v[i + count];
      v[i] = kept + __shfl_xor_sync(0xffffffffu, sent, step);
    }
  }
  return warp_sum<4>(v[0]);
}

// d(loss) / d(convolution output) of a batch, from that of the activated and, for q and k, normalised value
// (engine.md 4.9): ds = rho (d - xh <xh, d>) with xh = rho s, s = silu(pre). u: tokens from three before the
// batch; limits: the reach of its tokens, where kBorder.
template <bool kNormed, bool kBorder, int kCopies>
__device__ __forceinline__ void fill_d_pre(float (&dp)[kBatch][4], const float (&u)[kBatch + kHalo][4],
                                           const unsigned char* stage, const float4 (&w)[4],
                                           const int (&limits)[kBatch], int lane) {
  float along_s[kBatch][4], sums[2 * kBatch];
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    float upstream[4];
#pragma unroll
    for (int g = 0; g < kCopies; ++g) {
      float part[4];
      unpack4(part, reinterpret_cast<const uint2*>(stage + (1 + g) * kRowsBytes + i * kRowBytes)[lane]);
#pragma unroll
      for (int c = 0; c < 4; ++c) upstream[c] = g == 0 ? part[c] : upstream[c] + part[c];
    }
    float square = 0.0f, dot = 0.0f;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const auto input = [&](int back) {
        return !kBorder || limits[i] >= back ? u[i + kHalo - back][c] : 0.0f;
      };
      float pre = w[c].w * input(0);
      pre = fmaf(w[c].z, input(1), pre);
      pre = fmaf(w[c].y, input(2), pre);
      pre = fmaf(w[c].x, input(3), pre);
      const float gate = sigmoid(pre), s = pre * gate, slope = fmaf(s, 1.0f - gate, gate);
      dp[i][c] = upstream[c] * slope;
      if constexpr (kNormed) {
        along_s[i][c] = s * slope;
        square = fmaf(s, s, square);
        dot = fmaf(s, upstream[c], dot);
      }
    }
    sums[i] = square;
    sums[kBatch + i] = dot;
  }
  if constexpr (kNormed) {
    const float sum = sum_of_eight(sums, lane), dot = __shfl_xor_sync(0xffffffffu, sum, 16);
    const float rho = rsqrtf(sum + kNormEps), along = dot * rho * rho;  // of token lane / 4, lanes 0 .. 15
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const float r = __shfl_sync(0xffffffffu, rho, 4 * i), a = -__shfl_sync(0xffffffffu, along, 4 * i);
#pragma unroll
      for (int c = 0; c < 4; ++c) dp[i][c] = r * fmaf(a, along_s[i][c], dp[i][c]);
    }
  }
}

// What a warp keeps from batch to batch.
struct Carried {
  uint2 u[kHalo];
  float dp[kHalo][4];
  float dw[4][kTaps];
};

// Tokens first .. first + 3. Without kBorder all of them, and the two before, reach three tokens back and lie
// in the segment.
template <bool kWide, bool kNormed, bool kBorder, int kCopies>
__device__ __forceinline__ void walk_batch(const Segment& at, const unsigned char* stage, i32 first,
                                           const float4 (&w)[4], Carried& carried) {
  const int lane = at.lane;
  float u[kBatch + kHalo][4], dp[kBatch + kHalo][4], fresh[kBatch][4];
  int reach[kBatch + kHalo], limits[kBatch];
#pragma unroll
  for (int j = 0; j < kBatch + kHalo; ++j) {
    if (j < kHalo) {
      unpack4(u[j], carried.u[j]);
    } else {
      const uint2 raw = reinterpret_cast<const uint2*>(stage + (j - kHalo) * kRowBytes)[lane];
      unpack4(u[j], raw);
      if (j >= kBatch) carried.u[j - kBatch] = raw;
    }
    if constexpr (kBorder) reach[j] = at.reach(first - kHalo + j);
  }
#pragma unroll
  for (int i = 0; i < kBatch; ++i) limits[i] = kBorder ? reach[i + kHalo] : kHalo;
  fill_d_pre<kNormed, kBorder, kCopies>(fresh, u, stage, w, limits, lane);
#pragma unroll
  for (int j = 0; j < kBatch + kHalo; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) dp[j][c] = j < kHalo ? carried.dp[j][c] : fresh[j - kHalo][c];

      // Token t's d_pre reaches u_{t-d} through tap 3-d if t is at least d tokens into its sequence.
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    const i32 t = first - kHalo + i;
    float du[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const auto later = [&](int d) { return !kBorder || reach[i + d] >= d ? dp[i + d][c] : 0.0f; };
      du[c] = w[c].w * dp[i][c];
      du[c] = fmaf(w[c].z, later(1), du[c]);
      du[c] = fmaf(w[c].y, later(2), du[c]);
      du[c] = fmaf(w[c].x, later(3), du[c]);
    }
    if (t >= at.begin && (!kBorder || t < at.end)) store4<kWide>(at.du + t * at.row + lane * 4, du);
  }
#pragma unroll
  for (int i = 0; i < kBatch; ++i) {
    if (kBorder && first + i >= at.end) break;
#pragma unroll
    for (int c = 0; c < 4; ++c)
#pragma unroll
      for (int d = 0; d < kTaps; ++d)
        if (!kBorder || reach[i + kHalo] >= d)
          carried.dw[c][kTaps - 1 - d] = fmaf(fresh[i][c], u[i + kHalo - d][c], carried.dw[c][kTaps - 1 - d]);
  }
#pragma unroll
  for (int j = 0; j < kHalo; ++j)
#pragma unroll
    for (int c = 0; c < 4; ++c) carried.dp[j][c] = fresh[kBatch - kHalo + j][c];
}

// A warp's segment; carried.dw becomes this lane's four channels' part of the taps' gradient.
template <bool kWide, bool kNormed, int kCopies, int kStages, int kStageBytes>
__device__ __forceinline__ void walk_segment(const Segment& at, const float* taps, Carried& carried) {
  if (at.begin >= at.T) return;
  const int batches = (at.end - at.begin + kHalo + kBatch - 1) / kBatch;
#pragma unroll
  for (int k = 0; k < kStages - 1; ++k) {
    if (k < batches) load_batch<kWide, kCopies, kStageBytes>(at, k, at.begin + k * kBatch);
    copy_async_commit();
  }
  float4 w[4];
  load_taps(w, taps, at.lane * 4);
#pragma unroll
  for (int j = 0; j < kHalo; ++j) {
    const i32 t = at.begin - kHalo + j;
    carried.u[j] = t >= 0 ? load4_raw<kWide>(at.u + t * at.row + at.lane * 4) : make_uint2(0, 0);
  }
  // Bit i: token begin + 32 word + i, or one of the two before, stands less than three into its sequence.
  unsigned near_start[3];
#pragma unroll
  for (int word = 0; word < 3; ++word)
    near_start[word] = __ballot_sync(0xffffffffu, at.reach(at.begin + 32 * word + at.lane) < kHalo);
  const unsigned from_before[3] = {
      near_start[0] << 2 | near_start[0] << 1,
      __funnelshift_l(near_start[0], near_start[1], 2) | __funnelshift_l(near_start[0], near_start[1], 1),
      __funnelshift_l(near_start[1], near_start[2], 2) | __funnelshift_l(near_start[1], near_start[2], 1)};
#pragma unroll
  for (int word = 0; word < 3; ++word) near_start[word] |= from_before[word];
  for (int k = 0, stage = 0; k < batches; ++k, stage = stage == kStages - 1 ? 0 : stage + 1) {
    copy_async_wait<kStages - 2>();
    __syncwarp();
    const int next = k + kStages - 1;
    if (next < batches)
      load_batch<kWide, kCopies, kStageBytes>(at, stage == 0 ? kStages - 1 : stage - 1,
                                              at.begin + next * kBatch);
    copy_async_commit();
    const int bit = k * kBatch;
    const unsigned word = bit < 32 ? near_start[0] : bit < 64 ? near_start[1] : near_start[2];
    const unsigned char* from = at.ring + stage * kStageBytes;
    const i32 first = at.begin + bit;
    if (first + kBatch <= at.end && (word >> bit % 32 & 0xf) == 0) {
      walk_batch<kWide, kNormed, false, kCopies>(at, from, first, w, carried);
    } else {
      walk_batch<kWide, kNormed, true, kCopies>(at, from, first, w, carried);
    }
  }
}

// A block's part of the convolution: one head, kBlockTokens tokens; leaves the taps' gradient in scratch.
template <bool kWide, int kGroup>
__device__ __forceinline__ void convolution_bwd(const GdnPrepBackward& p, unsigned char* shared, int head,
                                                int block, const i32* pos, i32 T, int key_heads, i64 row,
                                                i64 conv_dim) {
  constexpr int kStages = stages(kGroup), kStageBytes = (1 + kGroup) * kRowsBytes;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const i64 values = conv_dim - 2 * i64{key_heads} * kHead;  // VD, the row of dq, dk and dv
  const bool normed = head < 2 * key_heads;
  Segment at;
  at.u = p.proj + head * kHead;
  at.upstream = head < key_heads ? p.dq + i64{head} * kGroup * kHead
                : normed         ? p.dk + i64{head - key_heads} * kGroup * kHead
                                 : p.dv + i64{head - 2 * key_heads} * kHead;
  at.du = p.dproj + head * kHead;
  at.pos = pos;
  at.row = row, at.values = values, at.T = T;
  at.begin = block * kBlockTokens + warp * kSegment;
  at.end = min(at.begin + kSegment, T);
  at.ring = shared + warp * ring_bytes(kGroup);
  at.lane = lane;
  const float* taps = p.conv_w + i64{head} * kHead * kTaps;
  Carried carried = {};
  if (normed) {
    walk_segment<kWide, true, kGroup, kStages, kStageBytes>(at, taps, carried);
  } else {
    walk_segment<kWide, false, 1, kStages, kStageBytes>(at, taps, carried);
  }

  __syncthreads();  // nobody reads the rings any more: their place takes the warps' taps
  float4(*sums)[kHead] = reinterpret_cast<float4(*)[kHead]>(shared);
#pragma unroll
  for (int c = 0; c < 4; ++c)
    sums[warp][lane * 4 + c] =
        make_float4(carried.dw[c][0], carried.dw[c][1], carried.dw[c][2], carried.dw[c][3]);
  __syncthreads();
  if (threadIdx.x >= kHead) return;
  float4 sum = sums[0][threadIdx.x];
#pragma unroll
  for (int i = 1; i < kWalkers; ++i) {
    const float4 more = sums[i][threadIdx.x];
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
  }
  reinterpret_cast<float4*>(p.scratch)[i64{block} * conv_dim + head * kHead + threadIdx.x] = sum;
}

// A block's part of the gates: da, db of a chunk's tokens, and the chunk's share of the gradients of A_log
// and dt_bias, which it leaves in partial [NC, 2 HV]. staged: 3 * 64 * heads.
__device__ __forceinline__ void gates_bwd(const GdnPrepBackward& p, bf16* staged, float* partial,
                                          const Chunk* chunks, int index, int heads, i64 row, i64 b_offset) {
  // [64][2 heads]: db | da; then [64][heads]: a
  bf16* a_rows = staged + kChunk * 2 * heads;
  const Chunk chunk = chunks[index];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = warp; i < chunk.count; i += kWalkers) {
    const bf16* from = p.proj + (chunk.begin + i) * row + b_offset + heads;
    for (int c = lane; c < heads; c += 32) a_rows[i * heads + c] = from[c];
  }
  __syncthreads();
  for (int head = warp; head < heads; head += kWalkers) {
    const float rate = -expf(p.a_log[head]), bias = p.dt_bias[head];
    const i64 line = (i64{index} * heads + head) * kChunk;
    float sum_a = 0.0f, sum_t = 0.0f;
    for (int i = lane; i < chunk.count; i += 32) {
      const float z = __bfloat162float(a_rows[i * heads + head]) + bias;
      const float d_gamma = p.d_gamma[line + i], beta = p.beta[line + i];
      const float da = d_gamma * rate * sigmoid(z);
      sum_a += d_gamma * rate * softplus(z);
      sum_t += da;
      staged[i * 2 * heads + head] = __float2bfloat16(p.d_beta[line + i] * beta * (1.0f - beta));
      staged[i * 2 * heads + heads + head] = __float2bfloat16(da);
    }
    sum_a = warp_sum(sum_a);
    sum_t = warp_sum(sum_t);
    if (lane == 0) {
      partial[i64{index} * 2 * heads + head] = sum_a;
      partial[i64{index} * 2 * heads + heads + head] = sum_t;
    }
  }
  __syncthreads();
  for (int i = warp; i < chunk.count; i += kWalkers) {
    bf16* to = p.dproj + (chunk.begin + i) * row + b_offset;
    for (int c = lane; c < 2 * heads; c += 32) to[c] = staged[i * 2 * heads + c];
  }
}

// Blocks of the convolution first, heads fastest, then one for the gates of each chunk.
template <bool kWide, int kGroup>
__global__ void __launch_bounds__(kWalkers * 32, 3)
    gdn_prep_bwd_kernel(GdnPrepBackward p, float* gates, const i32* pos, const Chunk* chunks, i32 T,
                        int key_heads, int blocks_of_heads, i64 row, i64 conv_dim, i64 b_offset) {
  extern __shared__ __align__(16) unsigned char shared[];
  const int block = blockIdx.x;
  if (block < blocks_of_heads) {
    const int heads = static_cast<int>(conv_dim / kHead);
    convolution_bwd<kWide, kGroup>(p, shared, block % heads, block / heads, pos, T, key_heads, row, conv_dim);
  } else {
    gates_bwd(p, reinterpret_cast<bf16*>(shared), gates, chunks, block - blocks_of_heads, key_heads * kGroup,
              row, b_offset);
  }
}

using Kernel = void (*)(GdnPrepBackward, float*, const i32*, const Chunk*, i32, int, int, i64, i64, i64);
template <bool kWide>
Kernel kernel_for(int group) {
  constexpr Kernel kernels[kMostGroup] = {gdn_prep_bwd_kernel<kWide, 1>, gdn_prep_bwd_kernel<kWide, 2>,
                                          gdn_prep_bwd_kernel<kWide, 3>, gdn_prep_bwd_kernel<kWide, 4>};
  return kernels[group - 1];
}

}  // namespace

size_t gdn_prep_bwd_scratch_bytes(i64 T, i64 num_chunk, const GdnShape& s) {
  const i64 blocks = ceil_div(T, kBlockTokens);
  return (blocks * s.conv_dim() * kTaps + num_chunk * 2 * s.value_heads) * sizeof(float);
}

void launch_gdn_prep_bwd(const GdnPrepBackward& p, const Batch& b, const GdnShape& s, cudaStream_t stream) {
  require_shape(s);
  require_size(s.group() >= 1 && s.group() <= kMostGroup, "linear_num_value_heads / linear_num_key_heads",
               s.group(), "1 to 4");
  const i64 blocks = ceil_div(b.T, kBlockTokens), heads = s.conv_dim() / kHead;
  const int hv = s.value_heads;
  // Copies of 16 bytes need rows of proj that are multiples of them.
  const auto kernel = s.proj_dim() % 8 == 0 ? kernel_for<true>(s.group()) : kernel_for<false>(s.group());
  const int shared =
      std::max(kWalkers * ring_bytes(s.group()), 3 * kChunk * hv * static_cast<int>(sizeof(bf16)));
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
             "gdn_prep_bwd");
  float* gates = p.scratch + blocks * s.conv_dim() * kTaps;
  kernel<<<static_cast<unsigned>(blocks * heads + b.num_chunk), kWalkers * 32, shared, stream>>>(
      p, gates, b.pos, b.chunk, b.T, s.key_heads, static_cast<int>(blocks * heads), s.proj_dim(),
      s.conv_dim(), s.b_offset());
  check_launch("gdn_prep_bwd");
  launch_reduce_partials({{{p.d_conv_w, p.scratch, blocks, s.conv_dim() * kTaps, s.conv_dim() * kTaps},
                           {p.d_a_log, gates, b.num_chunk, hv, 2 * hv},
                           {p.d_dt_bias, gates + hv, b.num_chunk, hv, 2 * hv}}},
                         stream);
}

}  // namespace tessera
