// Longest first: which chunk, or part of one, a block takes, so that none with much work begins last. Each
// block finds its own from the lengths alone, so that nothing has to be sorted before the launch.
#pragma once

#include "ops/attention/attention_device.cuh"

namespace tessera::attention {

// Above, a block would look longer for its chunk than a good order saves: chunks are taken as they come.
inline constexpr int kMostRanked = 256;

// Of the chunks in kParts parts each, that with the rank-th most work (work(chunk, part) >= 0; an unused
// chunk has none), the earlier first among equals: part * num_chunk + index of the chunk. Every thread of the
// block calls it; keys: kParts * num_chunk + 5 ints of shared memory, 16-byte aligned and free again
// afterwards.
template <int kParts, typename Work>
__device__ __forceinline__ int part_of_rank(const Args& args, int rank, int* keys, Work work) {
  if (args.num_chunk > kMostRanked) return rank;
  const int n = kParts * args.num_chunk, padded = (n + 3) / 4 * 4, thread = threadIdx.x, threads = blockDim.x;
  // Distinct, and in the order wanted.
  for (int c = thread; c < padded; c += threads) {
    const Chunk chunk = c < n ? args.chunk[c % args.num_chunk] : Chunk{};
    keys[c] = c < n ? (chunk.count == 0 ? 0 : work(chunk, c / args.num_chunk)) * n + n - 1 - c : -1;
  }
  __syncthreads();
  // Two lanes count for a chunk.
  for (int c = thread / 2; c < (n + 15) / 16 * 16; c += threads / 2) {
    const int mine = c < n ? keys[c] : 0;
    int before = 0;
#pragma unroll 4
    for (int at = thread % 2 * 4; at < padded; at += 8) {
      const int4 other = *reinterpret_cast<const int4*>(keys + at);
      before += (other.x > mine) + (other.y > mine) + (other.z > mine) + (other.w > mine);
    }
    before += __shfl_xor_sync(0xffffffffu, before, 1);
    if (c < n && before == rank) keys[padded] = c;
  }
  __syncthreads();
  const int found = keys[padded];
  __syncthreads();
  return found;
}

}  // namespace tessera::attention
