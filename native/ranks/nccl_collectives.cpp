#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/dynamic_library.h"
#include "core/error.h"
#include "ranks/collectives.h"
#include "ranks/rank_link.h"

namespace tessera {
namespace {

// NCCL's own numbers (nccl.h).
struct NcclId {
  char internal[128];
};
enum NcclType : int { kNcclBytes = 0, kNcclFloat = 7, kNcclDouble = 8, kNcclBf16 = 9 };
constexpr int kNcclSum = 0;

// One library, its functions by name: only what is called here.
struct Nccl {
  std::unique_ptr<DynamicLibrary> library;
  int (*version)(int*);
  int (*unique_id)(NcclId*);
  int (*init_rank)(void** comm, int world, NcclId id, int rank);
  int (*destroy)(void* comm);
  const char* (*error_text)(int);
  int (*group_start)();
  int (*group_end)();
  int (*all_gather)(const void*, void*, size_t, int type, void* comm, void* stream);
  int (*reduce_scatter)(const void*, void*, size_t, int type, int op, void* comm, void* stream);
  int (*all_reduce)(const void*, void*, size_t, int type, int op, void* comm, void* stream);
  int (*reduce)(const void*, void*, size_t, int type, int op, int root, void* comm, void* stream);
  int (*broadcast)(const void*, void*, size_t, int type, int root, void* comm, void* stream);

  Nccl() {
    std::string why;
    library = DynamicLibrary::open({"libnccl.so.2"}, &why);
    if (!library)
      throw EngineError("no_nccl", "several GPUs need NVIDIA's NCCL, which was not found: " + why,
                        "Install NCCL (libnccl2), set ENGINE_LIB_PATH to its folder, or train on one GPU.");
    library->load(version, "ncclGetVersion");
    library->load(unique_id, "ncclGetUniqueId");
    library->load(init_rank, "ncclCommInitRank");
    library->load(destroy, "ncclCommDestroy");
    library->load(error_text, "ncclGetErrorString");
    library->load(group_start, "ncclGroupStart");
    library->load(group_end, "ncclGroupEnd");
    library->load(all_gather, "ncclAllGather");
    library->load(reduce_scatter, "ncclReduceScatter");
    library->load(all_reduce, "ncclAllReduce");
    library->load(reduce, "ncclReduce");
    library->load(broadcast, "ncclBroadcast");
  }
};

// Sums in the same order in every run: one algorithm. Multicast stays off.
void settle_environment() {
  ::setenv("NCCL_NVLS_ENABLE", "0", 0);
  ::setenv("NCCL_ALGO", "Ring", 0);
}

class NcclCollectives final : public Collectives {
 public:
  explicit NcclCollectives(RankLink& link) : link_(link) {
    NcclId id{};
    if (link.rank() == 0) check(nccl_.unique_id(&id), "ncclGetUniqueId");
    const std::string shared = link.share_text(std::string(id.internal, sizeof id.internal));
    std::memcpy(id.internal, shared.data(), sizeof id.internal);
    check(nccl_.init_rank(&comm_, link.world(), id, link.rank()), "ncclCommInitRank");
  }
  // It waits for graphs that hold its calls, so there must be none; and where this rank fails, for ranks that
  // wait in a collective, so there it is left to the end of the process.
  ~NcclCollectives() override {
    if (std::uncaught_exceptions() == 0) nccl_.destroy(comm_);
  }

  std::string name() const override {
    int v = 0;
    nccl_.version(&v);
    return "NCCL " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
           std::to_string(v % 100);
  }

  void reduce_scatter(float* data, const Shares& shares, void* stream) override {
    float* own = data + shares.begin[static_cast<size_t>(link_.rank())];
    if (are_equal(shares))
      return check(nccl_.reduce_scatter(data + shares.begin[0], own, size_of(shares, 0), kNcclFloat, kNcclSum,
                                        comm_, stream),
                   "ncclReduceScatter");
    each_share(
        shares,
        [&](int r) {
          float* at = data + shares.begin[static_cast<size_t>(r)];
          return nccl_.reduce(at, at, size_of(shares, r), kNcclFloat, kNcclSum, r, comm_, stream);
        },
        "ncclReduce");
  }

  void all_gather(const void* own, void* data, DType type, const Shares& shares, void* stream) override {
    const auto at = [&](int r) {
      return static_cast<char*>(data) +
             static_cast<size_t>(shares.begin[static_cast<size_t>(r)]) * dtype_bytes(type);
    };
    const int unit = type == DType::bf16 ? kNcclBf16 : kNcclFloat;
    if (are_equal(shares))
      return check(nccl_.all_gather(own, at(0), size_of(shares, 0), unit, comm_, stream), "ncclAllGather");
    each_share(
        shares,
        [&](int r) {
          const void* from = r == link_.rank() ? own : at(r);
          return nccl_.broadcast(from, at(r), size_of(shares, r), unit, r, comm_, stream);
        },
        "ncclBroadcast");
  }

  void all_reduce(float* data, i64 count, void* stream) override {
    check(nccl_.all_reduce(data, data, static_cast<size_t>(count), kNcclFloat, kNcclSum, comm_, stream),
          "ncclAllReduce");
  }
  void all_reduce(double* data, i64 count, void* stream) override {
    check(nccl_.all_reduce(data, data, static_cast<size_t>(count), kNcclDouble, kNcclSum, comm_, stream),
          "ncclAllReduce");
  }
  void broadcast(void* data, size_t bytes, int root, void* stream) override {
    check(nccl_.broadcast(data, data, bytes, kNcclBytes, root, comm_, stream), "ncclBroadcast");
  }
  void barrier() override {
    link_.gather_texts("");
    link_.share_text("");
  }

 private:
  bool are_equal(const Shares& shares) const {
    for (int r = 1; r < link_.world(); ++r)
      if (shares.count(r) != shares.count(0)) return false;
    return true;
  }
  static size_t size_of(const Shares& shares, int rank) { return static_cast<size_t>(shares.count(rank)); }
  template <class Call>
  void each_share(const Shares& shares, const Call& call, const char* what) {
    check(nccl_.group_start(), "ncclGroupStart");
    for (int r = 0; r < link_.world(); ++r)
      if (shares.count(r) > 0) check(call(r), what);
    check(nccl_.group_end(), "ncclGroupEnd");
  }
  void check(int status, const char* what) const {
    if (status == 0) return;
    throw EngineError("nccl_failed", std::string(what) + ": " + nccl_.error_text(status),
                      "NCCL_DEBUG=INFO makes NCCL say more in the log.");
  }

  RankLink& link_;
  Nccl nccl_;
  void* comm_ = nullptr;
};

}  // namespace

std::unique_ptr<Collectives> make_nccl_collectives(RankLink& link) {
  settle_environment();
  return std::make_unique<NcclCollectives>(link);
}

}  // namespace tessera
