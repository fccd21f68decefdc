#include <algorithm>

#include "ops/gdn/gdn_prep_tile.cuh"

namespace tessera {
namespace {

using namespace prep;

// A block takes one head and a tile of tokens, in three steps: inputs u and upstream gradients to shared
// memory, all loads at once; the gradient d_pre of every convolution output, 3 tokens past the tile's end,
// over its upstream's place; the transposed convolution and the taps' gradient. A warp takes consecutive
// tokens, a lane four channels.
constexpr int kOutputs = kTile + kHalo;     // d_pre of tokens begin .. end + 2
constexpr int kInputs = kTile + 2 * kHalo;  // u of tokens begin - 3 .. end + 2
constexpr int kOutputsOfWarp = (kOutputs + kWarps - 1) / kWarps;
constexpr int kMostGroup = 4;  // value heads a key head may have: what fits 99 KB

struct PrepTile {
  uint2 u[kInputs][32];
  int reach[kOutputs + 1];
};
static_assert(sizeof(PrepTile) % 16 == 0);

// Of a token behind the tile: its upstream gradients, a copy of 256 bytes for each value head that reads the
// head; then, in their place, d_pre as float4 [32].
__host__ __device__ constexpr int slot_bytes(int group) { return group <= 2 ? 512 : 256 * group; }
int shared_bytes(int group) { return sizeof(PrepTile) + kOutputs * slot_bytes(group); }

// d(loss) / d(convolution output), from that of the activated and, for q and k, normalised value
// (engine.md 4.9): ds = rho (d - xh <xh, d>) with xh = rho s, s = silu(pre).
__device__ __forceinline__ float4 pre_activation_gradient(const float (&pre)[4], const float (&upstream)[4],
                                                          bool normed) {
  float s[4], slope[4];
  float square = 0.0f, dot = 0.0f;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const float gate = sigmoid(pre[c]);
    s[c] = pre[c] * gate;
    slope[c] = silu_slope(pre[c], gate);
    square += s[c] * s[c];
    dot += s[c] * upstream[c];
  }
  float rho = 1.0f, along = 0.0f;
  if (normed) {
    rho = rsqrtf(warp_sum(square) + kNormEps);
    along = warp_sum(dot) * rho * rho;
  }
  float d[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) d[c] = rho * (upstream[c] - s[c] * along) * slope[c];
  return make_float4(d[0], d[1], d[2], d[3]);
}

// Where the gradient of a head comes from: the first of the `copies` value heads that read it.
struct HeadGradient {
  const bf16* p;
  int copies;
  bool normed;
};

__device__ __forceinline__ HeadGradient head_gradient(const GdnPrepBackward& p, int head, int key_heads,
                                                      int group) {
  const bool normed = head < 2 * key_heads;
  const bf16* from = head < key_heads ? p.dq + i64{head} * group * kHead
                     : normed         ? p.dk + i64{head - key_heads} * group * kHead
                                      : p.dv + i64{head - 2 * key_heads} * kHead;
  return {from, normed ? group : 1, normed};
}

__device__ __forceinline__ float4* d_pre_of(unsigned char* slots, int slot, int token) {
  return reinterpret_cast<float4*>(slots + token * slot);
}

__device__ __forceinline__ void fill_d_pre(const PrepTile& tile, unsigned char* slots, int slot,
                                           const HeadGradient& h, const float4 (&w)[4]) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * kOutputsOfWarp;
  if (first >= kOutputs) return;
  float window[kTaps][4] = {};
#pragma unroll
  for (int j = 0; j < kHalo; ++j) slide(window, tile.u[first + j][lane]);
#pragma unroll 3
  for (int i = 0; i < kOutputsOfWarp; ++i) {
    const int out = first + i;
    if (out >= kOutputs) return;
    slide(window, tile.u[out + kHalo][lane]);
    float upstream[4] = {};
    for (int g = 0; g < h.copies; ++g) {
      float part[4];
      unpack4(part, reinterpret_cast<const uint2*>(slots + out * slot)[g * 32 + lane]);
#pragma unroll
      for (int c = 0; c < 4; ++c) upstream[c] += part[c];
    }
    float pre[4];
    convolve(pre, window, w, tile.reach[out]);
    const float4 d = pre_activation_gradient(pre, upstream, h.normed);
    __syncwarp();  // every lane has read its part of the slot
    d_pre_of(slots, slot, out)[lane] = tile.reach[out] >= 0 ? d : float4{0, 0, 0, 0};
  }
}

template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32, 3)
    gdn_prep_bwd_kernel(GdnPrepBackward p, const i32* pos, i32 T, int key_heads, int group, i64 row,
                        i64 conv_dim) {
  extern __shared__ __align__(16) unsigned char shared[];
  PrepTile& tile = *reinterpret_cast<PrepTile*>(shared);
  unsigned char* slots = shared + sizeof(PrepTile);
  const int slot = slot_bytes(group);
  const int head = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const i32 begin = blockIdx.y * kTile;
  const i64 values = conv_dim - 2 * i64{key_heads} * kHead;  // VD, the row of dq, dk and dv
  const HeadGradient h = head_gradient(p, head, key_heads, group);
  copy_rows_async<kWide>(tile.u, p.proj + head * kHead, row, begin - kHalo, kInputs, T);
  for (int i = warp; i < kOutputs * h.copies; i += kWarps) {
    const int out = i / h.copies, g = i % h.copies;
    const bool valid = begin + out < T;
    copy4_async<true>(reinterpret_cast<uint2*>(slots + out * slot) + g * 32 + lane,
                      h.p + (valid ? begin + out : 0) * values + g * kHead + lane * 4, valid);
  }
  fill_reach(tile.reach, pos, begin, kOutputs, T);
  float4 w[4];
  load_taps(w, p.conv_w, head * kHead + lane * 4);
  wait_for_copies();
  fill_d_pre(tile, slots, slot, h, w);
  __syncthreads();

  // Token t's d_pre reaches u_{t-d} through tap 3-d if t is at least d tokens into its sequence.
  const int first = warp * kTokensOfWarp;
  const int* reach = tile.reach + first;
  float dw[4][kTaps] = {};
  float4 dp[kTaps];             // d_pre of tokens i .. i + 3
  float window[kTaps][4] = {};  // u of tokens i - 3 .. i
#pragma unroll
  for (int d = 0; d < kHalo; ++d) {
    dp[d + 1] = d_pre_of(slots, slot, first + d)[lane];
    slide(window, tile.u[first + d][lane]);
  }
#pragma unroll
  for (int i = 0; i < kTokensOfWarp; ++i) {
#pragma unroll
    for (int d = 0; d < kHalo; ++d) dp[d] = dp[d + 1];
    dp[kHalo] = d_pre_of(slots, slot, first + i + kHalo)[lane];
    slide(window, tile.u[first + i + kHalo][lane]);
    if (reach[i] < 0) break;  // past the last token
    float du[4];
    const float own[4] = {dp[0].x, dp[0].y, dp[0].z, dp[0].w};
    const auto component = [&](int d, int c) {
      return c == 0 ? dp[d].x : c == 1 ? dp[d].y : c == 2 ? dp[d].z : dp[d].w;
    };
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      du[c] = w[c].w * own[c];
      if (reach[i + 1] >= 1) du[c] += w[c].z * component(1, c);
      if (reach[i + 2] >= 2) du[c] += w[c].y * component(2, c);
      if (reach[i + 3] >= 3) du[c] += w[c].x * component(3, c);
      dw[c][3] += own[c] * window[3][c];
      if (reach[i] >= 1) dw[c][2] += own[c] * window[2][c];
      if (reach[i] >= 2) dw[c][1] += own[c] * window[1][c];
      if (reach[i] >= 3) dw[c][0] += own[c] * window[0][c];
    }
    store4<kWide>(p.dproj + (begin + first + i) * row + head * kHead + lane * 4, du);
  }

  __syncthreads();  // d_pre has been read: its place takes the warps' taps
  float4(*sums)[kHead] = reinterpret_cast<float4(*)[kHead]>(slots);
#pragma unroll
  for (int c = 0; c < 4; ++c) sums[warp][lane * 4 + c] = make_float4(dw[c][0], dw[c][1], dw[c][2], dw[c][3]);
  __syncthreads();
  if (threadIdx.x >= kHead) return;
  float4 sum = sums[0][threadIdx.x];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) {
    const float4 more = sums[i][threadIdx.x];
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
  }
  reinterpret_cast<float4*>(p.scratch)[i64{blockIdx.y} * conv_dim + head * kHead + threadIdx.x] = sum;
}

// One block a chunk: da, db of its tokens, and the chunk's share of the gradients of A_log and dt_bias, which
// it leaves in partial [NC, 2 HV].
__global__ void gdn_gates_bwd_kernel(GdnPrepBackward p, float* partial, const Chunk* chunks, int heads,
                                     i64 row, i64 b_offset) {
  extern __shared__ bf16 staged[];  // [64][2 heads]: db | da; then [64][heads]: a
  bf16* a_rows = staged + kChunk * 2 * heads;
  const Chunk chunk = chunks[blockIdx.x];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int i = warp; i < chunk.count; i += warps) {
    const bf16* from = p.proj + (chunk.begin + i) * row + b_offset + heads;
    for (int c = lane; c < heads; c += 32) a_rows[i * heads + c] = from[c];
  }
  __syncthreads();
  for (int head = warp; head < heads; head += warps) {
    const float rate = -expf(p.a_log[head]), bias = p.dt_bias[head];
    const i64 line = (i64{blockIdx.x} * heads + head) * kChunk;
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
      partial[i64{blockIdx.x} * 2 * heads + head] = sum_a;
      partial[i64{blockIdx.x} * 2 * heads + heads + head] = sum_t;
    }
  }
  __syncthreads();
  for (int i = warp; i < chunk.count; i += warps) {
    bf16* to = p.dproj + (chunk.begin + i) * row + b_offset;
    for (int c = lane; c < 2 * heads; c += 32) to[c] = staged[i * 2 * heads + c];
  }
}

}  // namespace

size_t gdn_prep_bwd_scratch_bytes(i64 T, i64 num_chunk, const GdnShape& s) {
  const i64 tiles = (T + kTile - 1) / kTile;
  return (tiles * s.conv_dim() * kTaps + num_chunk * 2 * s.value_heads) * sizeof(float);
}

void launch_gdn_prep_bwd(const GdnPrepBackward& p, const Batch& b, const GdnShape& s, cudaStream_t stream) {
  require_shape(s);
  require_size(s.group() <= kMostGroup, "linear_num_value_heads / linear_num_key_heads", s.group(),
               "at most 4");
  const i64 tiles = ceil_div(b.T, kTile);
  const dim3 grid(2 * s.key_heads + s.value_heads, static_cast<unsigned>(tiles));
  const auto kernel = wide_rows(s) ? gdn_prep_bwd_kernel<true> : gdn_prep_bwd_kernel<false>;
  const int shared = shared_bytes(s.group());
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
             "gdn_prep_bwd");
  kernel<<<grid, kWarps * 32, shared, stream>>>(p, b.pos, b.T, s.key_heads, s.group(), s.proj_dim(),
                                                s.conv_dim());
  check_launch("gdn_prep_bwd");
  launch_reduce_partials(p.d_conv_w, p.scratch, tiles, s.conv_dim() * kTaps, stream);

  float* gates = p.scratch + tiles * s.conv_dim() * kTaps;
  const int hv = s.value_heads;
  gdn_gates_bwd_kernel<<<b.num_chunk, 256, 3 * kChunk * hv * sizeof(bf16), stream>>>(
      p, gates, b.chunk, hv, s.proj_dim(), s.b_offset());
  check_launch("gdn_gates_bwd");
  launch_reduce_partials(p.d_a_log, gates, b.num_chunk, hv, 2 * hv, stream);
  launch_reduce_partials(p.d_dt_bias, gates + hv, b.num_chunk, hv, 2 * hv, stream);
}

}  // namespace tessera
