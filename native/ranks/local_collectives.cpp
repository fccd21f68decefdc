#include <algorithm>
#include <cstring>

#include "ranks/collectives.h"
#include "ranks/rank_link.h"

namespace tessera {
namespace {

// Rank 0 is the hub: it adds what the others send to its own, rank by rank, and hands the sums out. Nobody
// sends before the other side reads, so nobody waits for a full socket in a circle.
class LocalCollectives final : public Collectives {
 public:
  explicit LocalCollectives(RankLink& link) : link_(link) {}

  std::string name() const override { return "local sockets"; }

  void reduce_scatter(float* data, const Shares& shares, void*) override {
    const i64 begin = shares.begin.front(), count = shares.begin.back() - begin;
    if (link_.rank() > 0) {
      link_.send(0, data + begin, bytes_of<float>(count));
      float* own = data + shares.begin[static_cast<size_t>(link_.rank())];
      return link_.receive(0, own, bytes_of<float>(shares.count(link_.rank())));
    }
    add_all(data + begin, count);
    for (int r = 1; r < link_.world(); ++r)
      link_.send(r, data + shares.begin[static_cast<size_t>(r)], bytes_of<float>(shares.count(r)));
  }

  void all_gather(const void* own, void* data, DType type, const Shares& shares, void*) override {
    const auto at = [&](int r) {
      return static_cast<char*>(data) +
             static_cast<size_t>(shares.begin[static_cast<size_t>(r)]) * dtype_bytes(type);
    };
    const auto bytes = [&](int r) { return static_cast<size_t>(shares.count(r)) * dtype_bytes(type); };
    std::memmove(at(link_.rank()), own, bytes(link_.rank()));
    if (link_.rank() > 0) {
      link_.send(0, own, bytes(link_.rank()));
      for (int r = 0; r < link_.world(); ++r)
        if (r != link_.rank()) link_.receive(0, at(r), bytes(r));
      return;
    }
    for (int r = 1; r < link_.world(); ++r) link_.receive(r, at(r), bytes(r));
    for (int to = 1; to < link_.world(); ++to)
      for (int r = 0; r < link_.world(); ++r)
        if (r != to) link_.send(to, at(r), bytes(r));
  }

  void all_reduce(float* data, i64 count, void*) override { reduce_all(data, count); }
  void all_reduce(double* data, i64 count, void*) override { reduce_all(data, count); }

  void broadcast(void* data, size_t bytes, int root, void*) override {
    if (root > 0 && link_.rank() == root) link_.send(0, data, bytes);
    if (root > 0 && link_.rank() == 0) link_.receive(root, data, bytes);
    for (int r = 1; link_.rank() == 0 && r < link_.world(); ++r)
      if (r != root) link_.send(r, data, bytes);
    if (link_.rank() > 0 && link_.rank() != root) link_.receive(0, data, bytes);
  }

  void barrier() override {
    link_.gather_texts("");
    link_.share_text("");
  }

 private:
  template <class T>
  static size_t bytes_of(i64 count) {
    return static_cast<size_t>(count) * sizeof(T);
  }
  template <class T>
  void add_all(T* data, i64 count) {
    std::vector<T> theirs(static_cast<size_t>(count));
    for (int r = 1; r < link_.world(); ++r) {
      link_.receive(r, theirs.data(), bytes_of<T>(count));
      for (i64 i = 0; i < count; ++i) data[i] += theirs[static_cast<size_t>(i)];
    }
  }
  template <class T>
  void reduce_all(T* data, i64 count) {
    if (link_.rank() > 0) {
      link_.send(0, data, bytes_of<T>(count));
      return link_.receive(0, data, bytes_of<T>(count));
    }
    add_all(data, count);
    for (int r = 1; r < link_.world(); ++r) link_.send(r, data, bytes_of<T>(count));
  }

  RankLink& link_;
};

}  // namespace

Shares deal(i64 begin, i64 count, int world) {
  Shares shares;
  const i64 blocks = (count + kShareAlign - 1) / kShareAlign;
  for (int r = 0; r <= world; ++r)
    shares.begin.push_back(begin + std::min(count, blocks * r / world * kShareAlign));
  return shares;
}

std::unique_ptr<Collectives> make_local_collectives(RankLink& link) {
  return std::make_unique<LocalCollectives>(link);
}

}  // namespace tessera
