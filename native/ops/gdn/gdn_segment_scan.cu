// Long examples' states at the edges of their segments: S <- Phi S + S_local from segment to segment, in
// fp32. gdn_segments.cuh tells what stands where.
#include "ops/gdn/gdn_kernels.h"
#include "ops/gdn/gdn_segments.cuh"
#include "ops/wgmma.cuh"

namespace tessera::gdn {
namespace {

// A middle segment has rows for its three slots, a lane looks at each chunk of a window, and a long example
// has two segments at least.
constexpr bool serves(const SegmentRule& rule) {
  return rule.segment * kChunk >= 3 * 2 * kHead && rule.segment <= 32 && rule.longest_whole >= rule.segment;
}
static_assert(serves(segment_rule(16)) && serves(segment_rule(32)) && serves(segment_rule(48)));

constexpr int kRows = 8;  // values of a block; a thread has a key dim of each

// One block per (value head, rows of values, window of chunks): that of an example's second segment walks it.
template <bool kReverse>
__global__ void __launch_bounds__(kHead) gdn_segment_scan_kernel(Args args, bf16* rows) {
#ifdef TESSERA_WGMMA
  const LongExample example = find_segment(args, blockIdx.z);
  const int last = example.segments - 1;
  if (example.index != 1 || last < 2) return;
  const int head = blockIdx.x, row0 = kRows * blockIdx.y, key_dim = threadIdx.x;
  const auto slots = [&](int i) {
    return Slots(rows, args.values, example.segment_token(i, args.segment), head);
  };
  __shared__ __align__(16) float state[kRows][kHead];
  float x[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) x[r] = *slots(kReverse ? last : 1).at(kEdge, row0 + r, key_dim);
  for (int step = 1; step < last; ++step) {
    const int i = kReverse ? last - step : step;
    const Slots here = slots(i);
    float phi[kHead];  // all on their way at once
#pragma unroll
    for (int m = 0; m < kHead; ++m) phi[m] = *here.at(kTransition, m, key_dim);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      state[r][key_dim] = x[r];
      x[r] = *here.at(kLocal, row0 + r, key_dim);
    }
    __syncthreads();
#pragma unroll
    for (int m = 0; m < kHead; m += 4) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 s = *reinterpret_cast<const float4*>(&state[r][m]);
        x[r] += s.x * phi[m];
        x[r] += s.y * phi[m + 1];
        x[r] += s.z * phi[m + 2];
        x[r] += s.w * phi[m + 3];
      }
    }
    const Slots next = kReverse ? here : slots(i + 1);
#pragma unroll
    for (int r = 0; r < kRows; ++r) *next.at(kEdge, row0 + r, key_dim) = x[r];
  }
#else
  __trap();  // between Hopper's chains only; elsewhere it would spill
#endif
}

}  // namespace

void run_segment_scan(const Args& args, bf16* rows, bool reverse, cudaStream_t stream) {
  const auto kernel = reverse ? gdn_segment_scan_kernel<true> : gdn_segment_scan_kernel<false>;
  kernel<<<dim3(args.value_heads, kHead / kRows, segment_windows(args)), kHead, 0, stream>>>(args, rows);
  check_launch("gdn_segment_scan");
}

}  // namespace tessera::gdn
