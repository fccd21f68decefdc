// A command whose device names several: it starts the other ranks, or is one that somebody else has started.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "core/files.h"
#include "model/parameters.h"
#include "ranks/rank_link.h"

namespace tessera {

struct RankArguments {
  int rank = -1, world = 0;  // given where somebody else starts the ranks
  fs::path rendezvous;
};
void add_rank_options(CLI::App* command, RankArguments* arguments);

// Which rank this process is, and where each of them computes.
struct RankPlace {
  RankOf rank;
  std::vector<std::string> devices;  // by rank
  const std::string& device() const { return devices[static_cast<size_t>(rank.rank)]; }
};
// Throws wrong_call.
RankPlace settle_ranks(const std::string& device, const RankArguments& arguments);

// Does `work` as one of several processes, with the threads that each may use. Where one of them fails all
// end, and the process with it: a GPU may be in a collective that will never be answered, which only that
// takes it out of. `tell` says why, {code, message, hint, rank?}: called on rank 0, and on the one that
// failed.
void as_rank(const RankPlace& place, const RankArguments& arguments, int threads,
             const std::function<void(const Json& error)>& tell,
             const std::function<void(RankLink& link, int threads)>& work);

Json error_json(const EngineError& error);

}  // namespace tessera
