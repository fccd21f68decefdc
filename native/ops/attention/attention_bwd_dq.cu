// Gradients of queries and gates of packed causal attention.
//
// attention_bwd_gate: a warp per (token, head), any D: dO = dy sigmoid(gate), d_gate = dy o sigmoid'(gate),
// delta = <dO, o>.
// attention_bwd_dq, D = 256: one block per (64 queries of a sequence, head): P = exp(S - lse), dP = dO V^T,
// dS = P (dP - delta), dq = dS k / 16. Four warps of 16 queries each; keys and values in tiles of 32; dS goes
// from the accumulators into A fragments. 96 KB of shared memory, two blocks an SM. Outputs overwrite.
// Reference: attention_reference.cu; check: tests/native/cuda.
#include "ops/attention/attention_device.cuh"
#include "ops/attention/attention_kernels.h"

namespace tessera::attention {
namespace {

constexpr int kThreads = 128;
constexpr int kQueries = 64;
constexpr int kKeys = 32;
constexpr int kQueryBytes = kQueries * kHead * 2;
constexpr int kKeyBytes = kKeys * kHead * 2;
constexpr int kSharedBytes = 2 * kQueryBytes + 2 * kKeyBytes;

__global__ void attention_bwd_gate_kernel(Args args, Gradients out, const bf16* dy, const bf16* o) {
  const int lane = threadIdx.x % 32;
  const i64 row = static_cast<i64>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= static_cast<i64>(args.tokens) * args.heads) return;
  const int token = static_cast<int>(row / args.heads), head = static_cast<int>(row % args.heads);
  const size_t at = args.q_at(token, head), gate_at = args.gate_at(token, head);
  float delta = 0.0f;
  for (int d = lane * 8; d < args.head_dim; d += 256) {
    float y[8], attended[8], gate[8], d_gate[8];
    load8(y, dy + at + d);
    load8(attended, o + at + d);
    load8(gate, args.proj + gate_at + d);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float s = sigmoid(gate[i]);
      d_gate[i] = y[i] * attended[i] * s * (1.0f - s);
      // As rounded for the products below: a row whose softmax is one key then has exactly no gradient.
      y[i] = __bfloat162float(__float2bfloat16_rn(y[i] * s));
      delta += y[i] * attended[i];
    }
    store8(out.d_o + at + d, y);
    store8(out.dproj + gate_at + d, d_gate);
  }
  delta = warp_sum(delta);
  if (lane == 0) out.delta[args.row_at(token, head)] = delta;
}

__global__ void __launch_bounds__(kThreads, 2)
    attention_bwd_dq_kernel(Args args, Gradients out, const float* lse) {
  extern __shared__ __align__(1024) unsigned char shared[];
  int thread = threadIdx.x;
  const int warp = thread / 32;
  const int head = blockIdx.x, kv_head = head / args.group;
  const Chunk chunk = args.chunk[args.num_chunk - 1 - blockIdx.y];
  if (chunk.count == 0) return;
  const int start = args.cu[chunk.seq], end = chunk.begin + chunk.count;
  const u32 base = shared_address(shared);
  const size_t q_stride = args.q_at(1, 0), k_stride = args.k_at(1, 0), at = args.q_at(chunk.begin, head);
  load_tile<kQueries, kThreads>(Tile<kHead>(base, thread % 32), args.q + at, q_stride, chunk.count, thread);
  load_tile<kQueries, kThreads>(Tile<kHead>(base + kQueryBytes, thread % 32), out.d_o + at, q_stride,
                                chunk.count, thread);

  const int row0 = 16 * warp + thread % 32 / 4, q4 = thread % 4;
  float row_lse[2], delta[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const bool ok = row0 + 8 * r < chunk.count;
    row_lse[r] = ok ? lse[args.row_at(chunk.begin + row0 + 8 * r, head)] : 0.0f;
    delta[r] = ok ? out.delta[args.row_at(chunk.begin + row0 + 8 * r, head)] : 0.0f;
  }

  float acc[32][4] = {};
  for (int key = start; key < end; key += kKeys) {
    thread = opaque(thread);
    const int lane = thread % 32;
    const Tile<kHead> q(base, lane), d_o(base + kQueryBytes, lane), k(base + 2 * kQueryBytes, lane),
        v(base + 2 * kQueryBytes + kKeyBytes, lane);
    load_tile<kKeys, kThreads>(k, args.k + args.k_at(key, kv_head), k_stride, end - key, thread);
    load_tile<kKeys, kThreads>(v, args.proj + args.v_at(key, kv_head), args.proj_dim, end - key, thread);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    float s[4][4] = {}, dp[4][4] = {};
#pragma unroll
    for (int ks = 0; ks < kHead / 16; ++ks) {
      const Frag a = q.a(16 * warp, 16 * ks), b = d_o.a(16 * warp, 16 * ks);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        mma_pair(s[2 * n], s[2 * n + 1], a, k.b_trans(16 * ks, 16 * n));
        mma_pair(dp[2 * n], dp[2 * n + 1], b, v.b_trans(16 * ks, 16 * n));
      }
    }
    const int ahead = chunk.begin + row0 - key - 2 * q4;  // query minus key, of this thread's first element
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float p = exp2_approx((s[n][r] * kScale - row_lse[r / 2]) * kLog2e);
        s[n][r] = ahead + r / 2 * 8 - 8 * n - r % 2 >= 0 ? p * (dp[n][r] - delta[r / 2]) : 0.0f;
      }
    }
#pragma unroll
    for (int ks = 0; ks < kKeys / 16; ++ks) {
      const Frag a = to_a_frag(s[2 * ks], s[2 * ks + 1]);
#pragma unroll
      for (int n = 0; n < 16; ++n) mma_pair(acc[2 * n], acc[2 * n + 1], a, k.b(16 * ks, 16 * n));
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = row0 + 8 * r;
    if (row >= chunk.count) continue;
    bf16* dst = out.dq + args.q_at(chunk.begin + row, head) + 2 * q4;
#pragma unroll
    for (int n = 0; n < 32; ++n)
      *reinterpret_cast<u32*>(dst + 8 * n) = pack_bf16(acc[n][2 * r] * kScale, acc[n][2 * r + 1] * kScale);
  }
}

}  // namespace

void run_bwd_gate(const Args& args, const Gradients& out, const bf16* dy, const bf16* o,
                  cudaStream_t stream) {
  constexpr int kGateThreads = 256;
  const i64 rows = static_cast<i64>(args.tokens) * args.heads;
  attention_bwd_gate_kernel<<<ceil_div(rows, kGateThreads / 32), kGateThreads, 0, stream>>>(args, out, dy, o);
  check_launch("attention_bwd_gate");
}

void run_bwd_dq(const Args& args, const Gradients& out, const float* lse, cudaStream_t stream) {
  check_cuda(cudaFuncSetAttribute(attention_bwd_dq_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes),
             "attention_bwd_dq");
  attention_bwd_dq_kernel<<<dim3(args.heads, args.num_chunk), kThreads, kSharedBytes, stream>>>(args, out,
                                                                                                lse);
  check_launch("attention_bwd_dq");
}

}  // namespace tessera::attention
