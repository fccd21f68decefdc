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

// The gradient of the convolved, activated, normalised value of four channels of one token, in fp32:
// d_pre = d(loss)/d(convolution output).
struct HeadGradient {
  const bf16* grad;  // first of the `copies` value heads that read this head, at this lane's channels
  i64 row;           // its row stride
  int copies;
  bool normed;
};

__device__ __forceinline__ void pre_activation_gradient(float (&d_pre)[4], const float (&pre)[4], const HeadGradient& h,
                                                        const float (&upstream)[4]) {
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
  if (h.normed) {
    rho = rsqrtf(warp_sum(square) + kNormEps);
    along = warp_sum(dot) * rho * rho;  // <xh, d xh> / |s|-ish: ds = rho (d - xh <xh, d>), xh = rho s
  }
#pragma unroll
  for (int c = 0; c < 4; ++c) d_pre[c] = rho * (upstream[c] - s[c] * along) * slope[c];
}

// Walks a tile's tokens upwards. Token t's gradient d_pre reaches u_{t-d} through tap 3-d if t is at least d tokens into
// its sequence; `ring` gathers what the last four inputs have got so far, and the oldest is complete and written.
template <bool kWide>
__global__ void __launch_bounds__(kWarps * 32)
    gdn_prep_bwd_kernel(GdnPrepBackward p, const i32* pos, i32 T, int heads, int key_heads, int group, i64 row,
                        i64 conv_dim) {
  const int head = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (head >= heads) return;
  const int channel = head * kHead + lane * 4;
  const i32 begin = blockIdx.y * kTile, end = min(T, begin + kTile), last = min(T, end + kTaps - 1);
  float4 w[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) w[c] = reinterpret_cast<const float4*>(p.conv_w)[channel + c];

  const i64 values = conv_dim - 2 * i64{key_heads} * kHead;  // VD, also the row of dq and dk
  HeadGradient h;
  h.row = values;
  h.normed = head < 2 * key_heads;
  h.copies = h.normed ? group : 1;
  h.grad = (head < key_heads ? p.dq + i64{head} * group * kHead
            : h.normed       ? p.dk + i64{head - key_heads} * group * kHead
                             : p.dv + i64{head - 2 * key_heads} * kHead) + lane * 4;

  const bf16* in = p.proj + channel;
  float window[kTaps][4] = {}, ring[kTaps][4] = {};
  float4 dw[4] = {};
#pragma unroll
  for (int d = 3; d >= 1; --d) slide(window, begin >= d ? load4_raw<kWide>(in + (begin - d) * row) : uint2{0, 0});
  constexpr int kStep = 4;
  for (i32 t0 = begin; t0 < last + kTaps - 1; t0 += kStep) {  // three more turns empty the ring
    uint2 raw[kStep];
    float upstream[kStep][4] = {};
    i32 position[kStep];
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
      const i32 t = t0 + i;
      raw[i] = uint2{0, 0};
      position[i] = 0;
      if (t >= last) continue;
      raw[i] = load4_raw<kWide>(in + t * row);
      position[i] = pos[t];
      for (int g = 0; g < h.copies; ++g) {
        float part[4];
        unpack4(part, load4_raw<true>(h.grad + t * h.row + g * kHead));
#pragma unroll
        for (int c = 0; c < 4; ++c) upstream[i][c] += part[c];
      }
    }
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
      const i32 t = t0 + i;
      const int at = position[i];
      slide(window, raw[i]);
      float pre[4], d_pre[4];
      convolve(pre, window, w, at);
      pre_activation_gradient(d_pre, pre, h, upstream[i]);
      if (t >= last) {
#pragma unroll
        for (int c = 0; c < 4; ++c) d_pre[c] = 0.0f;
      }
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        ring[3][c] = ring[2][c] + (at >= 3 ? w[c].x * d_pre[c] : 0.0f);
        ring[2][c] = ring[1][c] + (at >= 2 ? w[c].y * d_pre[c] : 0.0f);
        ring[1][c] = ring[0][c] + (at >= 1 ? w[c].z * d_pre[c] : 0.0f);
        ring[0][c] = w[c].w * d_pre[c];
        if (t < end) {
          if (at >= 3) dw[c].x += d_pre[c] * window[0][c];
          if (at >= 2) dw[c].y += d_pre[c] * window[1][c];
          if (at >= 1) dw[c].z += d_pre[c] * window[2][c];
          dw[c].w += d_pre[c] * window[3][c];
        }
      }
      const i32 done = t - (kTaps - 1);
      if (done >= begin && done < end) store4<kWide>(p.dproj + done * row + channel, ring[3]);
    }
  }
  float4* out = reinterpret_cast<float4*>(p.scratch) + i64{blockIdx.y} * conv_dim + channel;
#pragma unroll
  for (int c = 0; c < 4; ++c) out[c] = dw[c];
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
  const dim3 grid(ceil_div(heads, kWarps), static_cast<unsigned>(tiles));
  const auto kernel = wide_rows(s) ? gdn_prep_bwd_kernel<true> : gdn_prep_bwd_kernel<false>;
  kernel<<<grid, kWarps * 32, 0, stream>>>(p, b.pos, b.T, heads, s.key_heads, s.group(), s.proj_dim(), s.conv_dim());
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
