#include "app/rank_process.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/json.h"
#include "ranks/launcher.h"

namespace tessera {

Json error_json(const EngineError& error) {
  return {{"code", error.code()}, {"message", error.what()}, {"hint", error.hint()}};
}

void add_rank_options(CLI::App* command, RankArguments* arguments) {
  command->add_option("--rank", arguments->rank,
                      "Number of this process among --world, where others start them");
  command->add_option("--world", arguments->world, "Processes of the run");
  command->add_option("--rendezvous", arguments->rendezvous, "Socket path at which they meet");
}

RankPlace settle_ranks(const std::string& device, const RankArguments& a) {
  RankPlace place{{}, rank_devices(device)};
  const bool by_hand = a.rank >= 0 || a.world > 0 || !a.rendezvous.empty();
  place.rank = by_hand ? RankOf{a.rank, a.world} : RankOf{0, static_cast<int>(place.devices.size())};
  const auto [rank, world] = place.rank;
  if (rank < 0 || rank >= world || (by_hand && a.rendezvous.empty()))
    throw EngineError(
        "wrong_call", "a rank needs --rank R, --world N and --rendezvous PATH, with R below N",
        "Leave all three out: then the ranks of a device such as cuda:0,1 are started for you.");
  const auto named = place.devices.size();
  if (named != 1 && named != static_cast<size_t>(world))
    throw EngineError("wrong_call", "device " + device + " names " + std::to_string(named) +
                                        " ranks, --world " + std::to_string(world));
  place.devices.resize(static_cast<size_t>(world), place.devices.back());
  return place;
}

void as_rank(const RankPlace& place, const RankArguments& a, int threads,
             const std::function<void(const Json& error)>& tell,
             const std::function<void(RankLink& link, int threads)>& work) {
  const auto [rank, world] = place.rank;
  if (place.device() == "cpu" && threads == 0) threads = threads_for_each(world);
  const auto launcher = a.rendezvous.empty() ? std::make_unique<Launcher>(world, threads) : nullptr;
  RankLink link({.rank = rank,
                 .world = world,
                 .rendezvous = launcher ? launcher->rendezvous() : a.rendezvous,
                 .why_gone = [&](int r) { return launcher ? launcher->why_gone(r) : std::string(); },
                 .on_lost =
                     [&](const Json& error) {
                       if (rank == 0) tell(error);
                       std::fprintf(stderr, "tessera-engine: rank %d ends: %s\n", rank,
                                    error.value("message", "").c_str());
                     }});
  const auto fail = [&](const EngineError& error) {
    link.fail(error);
    tell(error_json(error));
    if (launcher) launcher->end();
    std::_Exit(1);
  };
  try {
    work(link, threads);
    link.leave();
  } catch (const EngineError& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(EngineError("internal_error", error.what()));
  }
}

}  // namespace tessera
