// What the ranks of a run do together with data that lies in their backends' memory. Every rank makes the
// same calls in the same order; sums are taken in the order of the ranks, so that two runs give the same
// bits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/backend.h"

namespace tessera {

class RankLink;

// Which elements of a buffer belong to which rank: those from begin[r] to begin[r + 1].
struct Shares {
  std::vector<i64> begin;
  i64 count(int rank) const {
    return begin[static_cast<size_t>(rank) + 1] - begin[static_cast<size_t>(rank)];
  }
};
// A run of a flat buffer dealt to ranks in whole blocks of kShareAlign, as evenly as they go.
inline constexpr i64 kShareAlign = 256;
Shares deal(i64 begin, i64 count, int world);

class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual std::string name() const = 0;  // for the list of kernels
  // In place; `stream` is what Backend::beside hands out. Own share = the sum over all ranks; what the other
  // shares hold afterwards is nobody's. fp32.
  virtual void reduce_scatter(float* data, const Shares& shares, void* stream) = 0;
  // Every rank's own share to all. own: this rank's, which may be where it goes.
  virtual void all_gather(const void* own, void* data, DType type, const Shares& shares, void* stream) = 0;
  virtual void all_reduce(float* data, i64 count, void* stream) = 0;
  virtual void all_reduce(double* data, i64 count, void* stream) = 0;
  virtual void broadcast(void* data, size_t bytes, int root, void* stream) = 0;
  virtual void barrier() = 0;  // of the hosts
};

// For memory that the host can touch: rank 0 adds up what arrives over the link. The link must outlive them.
std::unique_ptr<Collectives> make_local_collectives(RankLink& link);
// NCCL, opened at run time, for the GPUs of this machine; joins the others. Throws EngineError no_nccl.
std::unique_ptr<Collectives> make_nccl_collectives(RankLink& link);

}  // namespace tessera
