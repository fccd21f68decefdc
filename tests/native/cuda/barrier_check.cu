// What compute-sanitizer makes of the two sides of a pipeline that meet at named barriers, in PTX's own
// example of barrier.arrive (ISA, "Parallel Synchronization and Communication Instructions"): a producer
// fills a slot and arrives at one barrier, a consumer waits there, reads and arrives at another, where the
// producer waits before it writes again. gdn_chain_wgmma.cuh does no more. A tool that reports a race in
// `documented_pattern` reports one there too.
#include "check.h"

namespace tessera::check {
namespace {

constexpr int kWarp = 32, kRounds = 8;

__global__ void documented_pattern(int* out) {
  __shared__ int slot[kWarp];
  const int lane = threadIdx.x % kWarp;
  if (threadIdx.x < kWarp) {
    for (int round = 0; round < kRounds; ++round) {
      if (round > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
      slot[lane] = 100 * round + lane;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
  } else {
    int sum = 0;
    for (int round = 0; round < kRounds; ++round) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += slot[kWarp - 1 - lane];
      if (round + 1 < kRounds) asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
    out[lane] = sum;
  }
}

// The same where both sides wait at both barriers.
__global__ void waiting_pattern(int* out) {
  __shared__ int slot[kWarp];
  const int lane = threadIdx.x % kWarp;
  int sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    if (threadIdx.x < kWarp) slot[lane] = 100 * round + lane;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (threadIdx.x >= kWarp) sum += slot[kWarp - 1 - lane];
    asm volatile("bar.sync 2, 64;" ::: "memory");
  }
  if (threadIdx.x >= kWarp) out[lane] = sum;
}

int run() {
  Report report;
  Buffer<int> out(kWarp);
  using Kernel = void (*)(int*);
  for (const auto& [kernel, name] : {std::pair<Kernel, const char*>{documented_pattern, "arrive and sync"},
                                     {waiting_pattern, "sync and sync"}}) {
    out.poison();
    kernel<<<1, 2 * kWarp>>>(out.device());
    require(cudaDeviceSynchronize(), name);
    out.download();
    bool right = true;
    for (int lane = 0; lane < kWarp; ++lane)
      right = right && out.host[lane] == 100 * kRounds * (kRounds - 1) / 2 + kRounds * (kWarp - 1 - lane);
    report.line(right, name);
  }
  return report.finish("barrier_check");
}

}  // namespace
}  // namespace tessera::check

int main() { return tessera::check::run(); }
