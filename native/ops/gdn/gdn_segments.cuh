// Long examples in segments (engine.md 4.12): what each part of the work is, and where it leaves the states
// at the segments' edges.
//
// Over a segment the state that leaves is linear in the one that enters: S_out = Phi S_in + S_local. A first
// launch runs every example that is not long, the first segment of those that are (in reverse the last one),
// and of the segments between two others S_local, from no state, and Phi, from the identity in the place of
// values. A scan then makes the state at every edge, and a second launch runs the segments after the first
// from theirs. Where an example is divided depends on its length alone.
//
// Everything between the launches is fp32 and stands in rows of the example itself that are written later: a
// slot of a segment is [128 values, 128 key dims], value v being rows 2v and 2v + 1 of this head's 256 bytes.
#pragma once

#include "ops/gdn/gdn_device.cuh"

namespace tessera::gdn {

enum class Part { whole, local, transition };
enum Slot { kEdge, kLocal, kTransition };  // kEdge: at the segment's left edge

#ifdef __CUDACC__

// A head's rows from a token on, as slots.
struct Slots {
  float* rows;
  size_t stride;  // floats from one row to the next

  __device__ Slots(bf16* buffer, size_t values, int token, int head)
      : rows(reinterpret_cast<float*>(buffer + token * values + head * kHead)), stride(values / 2) {}
  __device__ float* at(Slot slot, int value, int key_dim) const {
    return rows + (2 * (kHead * slot + value) + key_dim / 64) * stride + key_dim % 64;
  }
};

// A long example, as one of its segments but the first sees it.
struct LongExample {
  int begin, chunks;    // of the example
  int token;            // its first
  int segments, index;  // index: this segment, 0 where there is none

  __device__ int first_chunks(int length) const { return chunks - length * (segments - 1); }
  __device__ int segment_chunk(int i, int length) const {  // of the example
    return i == 0 ? 0 : first_chunks(length) + length * (i - 1);
  }
  __device__ int segment_token(int i, int length) const { return token + kChunk * segment_chunk(i, length); }
};

__device__ __forceinline__ int segments_of(int chunks, int length) { return (chunks + length - 1) / length; }

// The example of which a segment, not the first, begins in the window of `length` chunks: there is one at
// most, since all but the first of an example are that long, the last one's last chunk apart. Whole warps.
__device__ __forceinline__ LongExample find_segment(const Args& args, int window) {
  const int length = args.segment, lane = threadIdx.x % 32, at = window * length + lane;
  LongExample found{};
  if (lane < length && at < args.num_chunk) {
    const Chunk chunk = args.chunk[at];
    if (chunk.count > 0) {
      const int token = args.cu[chunk.seq], chunks = (args.cu[chunk.seq + 1] - token + kChunk - 1) / kChunk;
      const int of_example = (chunk.begin - token) / kChunk;
      if (chunks > args.longest_whole) {
        found = {at - of_example, chunks, token, segments_of(chunks, length), 0};
        const int after_first = of_example - found.first_chunks(length);
        if (after_first >= 0 && after_first % length == 0) found.index = 1 + after_first / length;
      }
    }
  }
  const unsigned lanes = __ballot_sync(0xffffffffu, found.index > 0);
  if (lanes == 0) return {};
  const int source = __ffs(lanes) - 1;
  return {__shfl_sync(0xffffffffu, found.begin, source), __shfl_sync(0xffffffffu, found.chunks, source),
          __shfl_sync(0xffffffffu, found.token, source), __shfl_sync(0xffffffffu, found.segments, source),
          __shfl_sync(0xffffffffu, found.index, source)};
}

// What one block does; nothing where the range is empty.
struct Work {
  ChunkRange range{};
  Part part = Part::whole;
  int from = -1, to = -1;  // first tokens of the segments whose slots it starts from and ends in; -1: none
};

// Blocks of the first launch: `num_seq` examples, then S_local and Phi of every window of chunks that has a
// segment between two others. Of the second launch (`resumed`): a window each.
template <bool kReverse>
__device__ __forceinline__ Work find_work(const Args& args, int num_seq, bool resumed) {
  Work work;
  const int y = blockIdx.y;
  if (!resumed && y < num_seq) {
    work.range = args.seq_chunk[y];
    const int chunks = work.range.end - work.range.begin;
    if (chunks <= args.longest_whole) return work;
    const LongExample example{work.range.begin, chunks, args.chunk[work.range.begin].begin,
                              segments_of(chunks, args.segment), 0};
    work.to = example.segment_token(kReverse ? example.segments - 1 : 1, args.segment);
    if (kReverse)
      work.range.begin = work.range.end - args.segment;
    else
      work.range.end = work.range.begin + example.first_chunks(args.segment);
    return work;
  }
  const LongExample example = find_segment(args, resumed ? y : (y - num_seq) / 2);
  const int i = example.index;
  if (i == 0 || (!resumed && i == example.segments - 1)) return work;
  const int ran = resumed && kReverse ? i - 1 : i;
  work.range = {example.begin + example.segment_chunk(ran, args.segment),
                example.begin + example.segment_chunk(ran + 1, args.segment)};
  const int token = example.segment_token(i, args.segment);
  if (resumed) {
    work.from = token;
  } else {
    work.part = (y - num_seq) % 2 == 0 ? Part::local : Part::transition;
    work.to = token;
  }
  return work;
}

#endif
}  // namespace tessera::gdn
