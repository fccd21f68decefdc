#include "ops/optimizer/optimizer_cuda.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr i64 kBlockElements = 8192;

// Eight elements a thread at a time where both addresses allow it; shares of ranks always do.
template <typename T, bool kAdd>
__global__ void __launch_bounds__(kThreads) keep_sum_kernel(T* to, const float* sum, i64 count) {
  const i64 begin = i64{blockIdx.x} * kBlockElements, end = min(count, begin + kBlockElements);
  const bool aligned = ((reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(sum)) & 15) == 0;
  const i64 vectors_end = aligned ? begin + (end - begin) / 8 * 8 : begin;
#pragma unroll 2
  for (i64 i = begin + threadIdx.x * 8; i < vectors_end; i += kThreads * 8) {
    float v[8];
    load8f(v, sum + i);
    if constexpr (sizeof(T) == 4) {
      if constexpr (kAdd) {
        float before[8];
        load8f(before, to + i);
#pragma unroll
        for (int c = 0; c < 8; ++c) v[c] += before[c];
      }
      reinterpret_cast<float4*>(to + i)[0] = make_float4(v[0], v[1], v[2], v[3]);
      reinterpret_cast<float4*>(to + i)[1] = make_float4(v[4], v[5], v[6], v[7]);
    } else {
      store8(to + i, v);
    }
  }
  for (i64 i = vectors_end + threadIdx.x; i < end; i += kThreads)
    if constexpr (kAdd)
      to[i] += sum[i];
    else
      to[i] = static_cast<T>(sum[i]);
}

template <typename T, bool kAdd>
void launch(void* to, const float* sum, i64 count, cudaStream_t stream) {
  keep_sum_kernel<T, kAdd>
      <<<ceil_div(count, kBlockElements), kThreads, 0, stream>>>(static_cast<T*>(to), sum, count);
  check_launch("keep_sum");
}

}  // namespace

void launch_keep_sum(void* to, DType type, const float* sum, i64 count, bool accumulate,
                     cudaStream_t stream) {
  if (count == 0) return;
  if (type == DType::bf16) {
    if (accumulate) throw EngineError("internal_error", "keep_sum: bf16 sums are not added up");
    return launch<bf16, false>(to, sum, count, stream);
  }
  accumulate ? launch<float, true>(to, sum, count, stream) : launch<float, false>(to, sum, count, stream);
}

}  // namespace tessera
