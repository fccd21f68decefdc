#include "ops/gdn/gdn_prep_cuda.h"

namespace tessera {
namespace {

constexpr int kHead = 128;     // channels of a head; a lane holds four
constexpr int kTaps = 4;
constexpr int kTile = 64;      // tokens a warp walks through
constexpr int kWarps = 8;      // a block's heads are adjacent: 2 KB of a row
constexpr int kAhead = 8;      // tokens loaded before the first is used
constexpr float kNormEps = 1e-6f;

void require_shape(const GdnShape& s) {
  require_size(s.key_dim == kHead, "linear_key_head_dim", s.key_dim, "128");
  require_size(s.value_dim == kHead, "linear_value_head_dim", s.value_dim, "128");
  require_size(s.conv_taps == kTaps, "linear_conv_kernel_dim", s.conv_taps, "4");
}

// Rows of proj are 8-byte aligned only where the number of value heads is even.
bool wide_rows(const GdnShape& s) { return s.proj_dim() % 4 == 0; }

// out[c] = sum_j w[c][j] u_{t-3+j}, window[j] = u_{t-3+j}; taps before the sequence's start (pos) are left out.
__device__ __forceinline__ void convolve(float (&out)[4], const float (&window)[kTaps][4], const float4 (&w)[4],
                                         int pos) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    float sum = w[c].w * window[3][c];
    if (pos >= 1) sum += w[c].z * window[2][c];
    if (pos >= 2) sum += w[c].y * window[1][c];
    if (pos >= 3) sum += w[c].x * window[0][c];
    out[c] = sum;
  }
}

__device__ __forceinline__ void slide(float (&window)[kTaps][4], uint2 next) {
#pragma unroll
  for (int j = 0; j < kTaps - 1; ++j) {
#pragma unroll
    for (int c = 0; c < 4; ++c) window[j][c] = window[j + 1][c];
  }
  unpack4(window[kTaps - 1], next);
}

template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32)
    gdn_prep_fwd_kernel(bf16* qkv, const bf16* proj, const float* conv_w, const i32* pos, i32 T, int heads,
                        int normed_heads, i64 row, i64 conv_dim) {
  const int head = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (head >= heads) return;
  const int channel = head * kHead + lane * 4;
  const i32 begin = blockIdx.y * kTile, end = min(T, begin + kTile);
  float4 w[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) w[c] = reinterpret_cast<const float4*>(conv_w)[channel + c];
  const bf16* in = proj + channel;
  float window[kTaps][4] = {};
#pragma unroll
  for (int d = 3; d >= 1; --d) slide(window, begin >= d ? load4_raw<kWide>(in + (begin - d) * row) : uint2{0, 0});
  for (i32 t = begin; t < end; t += kAhead) {
    uint2 raw[kAhead];
    i32 position[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      raw[i] = t + i < end ? load4_raw<kWide>(in + (t + i) * row) : uint2{0, 0};
      position[i] = t + i < end ? pos[t + i] : 0;
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      slide(window, raw[i]);
      float v[4];
      convolve(v, window, w, position[i]);
      float square = 0.0f;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        v[c] = silu(v[c]);
        square += v[c] * v[c];
      }
      if (head < normed_heads) {
        const float rho = rsqrtf(warp_sum(square) + kNormEps);
#pragma unroll
        for (int c = 0; c < 4; ++c) v[c] *= rho;
      }
      if (t + i < end) store4<true>(qkv + (t + i) * conv_dim + channel, v);
    }
  }
}

// Backward works on a head's tile in three steps of the block, so that tokens are independent in each: the inputs u of
// the tile and its halo to shared memory; the gradient d_pre of every convolution output, 3 tokens past the tile's end;
// then the transposed convolution and the taps' gradient. A warp takes consecutive tokens, a lane four channels.
constexpr int kHalo = kTaps - 1;
constexpr int kOutputs = kTile + kHalo;       // d_pre of tokens begin .. end + 2
constexpr int kInputs = kTile + 2 * kHalo;    // u of tokens begin - 3 .. end + 2
constexpr int kOutputsOfWarp = (kOutputs + kWarps - 1) / kWarps, kTokensOfWarp = kTile / kWarps;

struct PrepTile {
  float4 d_pre[kOutputs][32];
  uint2 u[kInputs][32];
  float4 dw[kWarps][kHead];  // per channel, four taps
  // How many inputs before it a token begin + i reaches, at most 3: its place in its sequence; -1 past the last token.
  int reach[kOutputs];
};

// d(loss) / d(convolution output), from that of the activated and, for q and k, normalised value (engine.md 4.9):
// ds = rho (d - xh <xh, d>) with xh = rho s, s = silu(pre).
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

// Where the gradient of a head comes from: the first of the `copies` value heads that read it, at the lane's channels.
struct HeadGradient {
  const bf16* p;
  i64 row;
  int copies;
  bool normed;
};

__device__ __forceinline__ HeadGradient head_gradient(const GdnPrepBackward& p, int head, int key_heads, int group,
                                                      i64 row, int lane) {
  const bool normed = head < 2 * key_heads;
  const bf16* from = head < key_heads ? p.dq + i64{head} * group * kHead
                     : normed         ? p.dk + i64{head - key_heads} * group * kHead
                                      : p.dv + i64{head - 2 * key_heads} * kHead;
  return {from + lane * 4, row, normed ? group : 1, normed};
}

__device__ __forceinline__ void fill_d_pre(PrepTile& tile, const HeadGradient& h, const float4 (&w)[4], i32 begin,
                                           i32 T) {
  constexpr int kStep = 3;  // tokens whose loads are in flight together
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int first = 0; first < kOutputsOfWarp; first += kStep) {
    float upstream[kStep][4] = {};
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
      const i32 t = begin + warp * kOutputsOfWarp + first + i;
      for (int g = 0; g < h.copies && t < T; ++g) {
        float part[4];
        unpack4(part, load4_raw<true>(h.p + t * h.row + g * kHead));
#pragma unroll
        for (int c = 0; c < 4; ++c) upstream[i][c] += part[c];
      }
    }
    float window[kTaps][4];
#pragma unroll
    for (int j = 1; j < kTaps; ++j) unpack4(window[j], tile.u[min(warp * kOutputsOfWarp + first + j - 1, kInputs - 1)][lane]);
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
      const int out = warp * kOutputsOfWarp + first + i;
      if (first + i >= kOutputsOfWarp || out >= kOutputs) break;
      float pre[4];
      slide(window, tile.u[out + kHalo][lane]);
      convolve(pre, window, w, tile.reach[out]);
      const float4 d = pre_activation_gradient(pre, upstream[i], h.normed);
      tile.d_pre[out][lane] = begin + out < T ? d : float4{0, 0, 0, 0};
    }
  }
}

template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32, 3)
    gdn_prep_bwd_kernel(GdnPrepBackward p, const i32* pos, i32 T, int key_heads, int group, i64 row, i64 conv_dim) {
  extern __shared__ __align__(16) unsigned char shared[];
  PrepTile& tile = *reinterpret_cast<PrepTile*>(shared);
  const int head = blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int channel = head * kHead + lane * 4;
  const i32 begin = blockIdx.y * kTile;
  for (int i = warp; i < kInputs; i += kWarps) {
    const i32 t = begin - kHalo + i;
    tile.u[i][lane] = t >= 0 && t < T ? load4_raw<kWide>(p.proj + t * row + channel) : uint2{0, 0};
  }
  for (int i = threadIdx.x; i < kOutputs; i += blockDim.x) tile.reach[i] = begin + i < T ? min(pos[begin + i], kHalo) : -1;
  float4 w[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) w[c] = reinterpret_cast<const float4*>(p.conv_w)[channel + c];
  const i64 values = conv_dim - 2 * i64{key_heads} * kHead;  // VD, also the row of dq and dk
  const HeadGradient h = head_gradient(p, head, key_heads, group, values, lane);
  __syncthreads();
  fill_d_pre(tile, h, w, begin, T);
  __syncthreads();

  // Token t's d_pre reaches u_{t-d} through tap 3-d if t is at least d tokens into its sequence.
  const int first = warp * kTokensOfWarp;
  const int* reach = tile.reach + first;
  float dw[4][kTaps] = {};
  float4 dp[kTaps];            // d_pre of tokens i .. i + 3
  float window[kTaps][4] = {};  // u of tokens i - 3 .. i
#pragma unroll
  for (int d = 0; d < kHalo; ++d) {
    dp[d + 1] = tile.d_pre[first + d][lane];
    slide(window, tile.u[first + d][lane]);
  }
#pragma unroll
  for (int i = 0; i < kTokensOfWarp; ++i) {
#pragma unroll
    for (int d = 0; d < kHalo; ++d) dp[d] = dp[d + 1];
    dp[kHalo] = tile.d_pre[first + i + kHalo][lane];
    slide(window, tile.u[first + i + kHalo][lane]);
    if (reach[i] < 0) break;  // past the last token
    float du[4];
    const float own[4] = {dp[0].x, dp[0].y, dp[0].z, dp[0].w};
    const auto component = [&](int d, int c) { return c == 0 ? dp[d].x : c == 1 ? dp[d].y : c == 2 ? dp[d].z : dp[d].w; };
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
    store4<kWide>(p.dproj + (begin + first + i) * row + channel, du);
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) tile.dw[warp][lane * 4 + c] = make_float4(dw[c][0], dw[c][1], dw[c][2], dw[c][3]);
  __syncthreads();
  if (threadIdx.x >= kHead) return;
  float4 sum = tile.dw[0][threadIdx.x];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) {
    const float4 more = tile.dw[i][threadIdx.x];
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
  }
  reinterpret_cast<float4*>(p.scratch)[i64{blockIdx.y} * conv_dim + head * kHead + threadIdx.x] = sum;
}

// One block a chunk: da, db of its tokens, and the chunk's share of the gradients of A_log and dt_bias, which it leaves
// in partial [NC, 2 HV].
__global__ void gdn_gates_bwd_kernel(GdnPrepBackward p, float* partial, const Chunk* chunks, int heads, i64 row,
                                     i64 b_offset) {
  extern __shared__ bf16 staged[];  // [64][2 heads]: db | da
  const Chunk chunk = chunks[blockIdx.x];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  for (int head = warp; head < heads; head += warps) {
    const float rate = -expf(p.a_log[head]), bias = p.dt_bias[head];
    const i64 line = (i64{blockIdx.x} * heads + head) * kChunk;
    float sum_a = 0.0f, sum_t = 0.0f;
    for (int i = lane; i < chunk.count; i += 32) {
      const float z = __bfloat162float(p.proj[(chunk.begin + i) * row + b_offset + heads + head]) + bias;
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

void launch_gdn_prep_fwd(bf16* qkv, const bf16* proj, const float* conv_w, const Batch& b, const GdnShape& s,
                         cudaStream_t stream) {
  require_shape(s);
  const int heads = 2 * s.key_heads + s.value_heads;
  const dim3 grid(ceil_div(heads, kWarps), ceil_div(b.T, kTile));
  const auto kernel = wide_rows(s) ? gdn_prep_fwd_kernel<true> : gdn_prep_fwd_kernel<false>;
  kernel<<<grid, kWarps * 32, 0, stream>>>(qkv, proj, conv_w, b.pos, b.T, heads, 2 * s.key_heads, s.proj_dim(),
                                           s.conv_dim());
  check_launch("gdn_prep_fwd");
}

size_t gdn_prep_bwd_scratch_bytes(i64 T, i64 num_chunk, const GdnShape& s) {
  const i64 tiles = (T + kTile - 1) / kTile;
  return (tiles * s.conv_dim() * kTaps + num_chunk * 2 * s.value_heads) * sizeof(float);
}

void launch_gdn_prep_bwd(const GdnPrepBackward& p, const Batch& b, const GdnShape& s, cudaStream_t stream) {
  require_shape(s);
  const int heads = 2 * s.key_heads + s.value_heads;
  const i64 tiles = ceil_div(b.T, kTile);
  const dim3 grid(static_cast<unsigned>(heads), static_cast<unsigned>(tiles));
  const auto kernel = wide_rows(s) ? gdn_prep_bwd_kernel<true> : gdn_prep_bwd_kernel<false>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(PrepTile)), "gdn_prep_bwd");
  kernel<<<grid, kWarps * 32, sizeof(PrepTile), stream>>>(p, b.pos, b.T, s.key_heads, s.group(), s.proj_dim(),
                                                          s.conv_dim());
  check_launch("gdn_prep_bwd");
  launch_reduce_partials(p.d_conv_w, p.scratch, tiles, s.conv_dim() * kTaps, stream);

  float* gates = p.scratch + tiles * s.conv_dim() * kTaps;
  const int hv = s.value_heads;
  gdn_gates_bwd_kernel<<<b.num_chunk, 256, kChunk * 2 * hv * sizeof(bf16), stream>>>(p, gates, b.chunk, hv,
                                                                                    s.proj_dim(), s.b_offset());
  check_launch("gdn_gates_bwd");
  launch_reduce_partials(p.d_a_log, gates, b.num_chunk, hv, 2 * hv, stream);
  launch_reduce_partials(p.d_dt_bias, gates + hv, b.num_chunk, hv, 2 * hv, stream);
}

}  // namespace tessera
