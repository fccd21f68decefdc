// Longest first: which chunk a block takes, so that none with much work begins last. Each block finds its own
// from the lengths alone, so that nothing has to be sorted before the launch.
#pragma once

#include "ops/attention/attention_device.cuh"

namespace tessera::attention {

// Of the chunks, that with the rank-th most work (work(chunk) >= 0; an unused chunk has none), the earlier
// first among equals. Every thread of the block calls it; keys: num_chunk + 1 ints of shared memory, free
// again afterwards.
template <typename Work>
__device__ __forceinline__ Chunk chunk_of_rank(const Args& args, int rank, int* keys, Work work) {
  const int n = args.num_chunk, thread = threadIdx.x, threads = blockDim.x;
  // Distinct, and in the order wanted.
  for (int c = thread; c < n; c += threads) {
    const Chunk chunk = args.chunk[c];
    keys[c] = (chunk.count == 0 ? 0 : work(chunk)) * n + n - 1 - c;
  }
  __syncthreads();
  for (int c = thread; c < n; c += threads) {
    const int mine = keys[c];
    int before = 0;
#pragma unroll 8
    for (int other = 0; other < n; ++other) before += keys[other] > mine;
    if (before == rank) keys[n] = c;
  }
  __syncthreads();
  const int found = keys[n];
  __syncthreads();
  return args.chunk[found];
}

}  // namespace tessera::attention
