// A run over several processes: rank 0 leads and speaks, the others do what it tells them, in its order.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/json.h"
#include "model/flops.h"
#include "train/trainer.h"

namespace tessera {
namespace {

// What a rank is asked for while rank 0 writes down what all of them keep.
struct PieceRequest {
  i64 field, begin, count;
};
constexpr i64 kNoMorePieces = -1;

}  // namespace

void Trainer::say(const Json& event) const {
  if (leads()) emit(event);
}

void Trainer::tell(Order order, bool flag, i64 step) const {
  if (!leads() || !options_.link) return;
  const Telling telling{order, flag, step};
  for (int r = 1; r < options_.rank.world; ++r) options_.link->send(r, &telling, sizeof telling);
}

std::unique_ptr<Collectives> Trainer::join_ranks() {
  if (!options_.link) return nullptr;
  rank_processes_ = options_.link->gather_texts(std::to_string(::getpid()));
  return device_->name() == "cpu" ? make_local_collectives(*options_.link)
                                  : make_nccl_collectives(*options_.link);
}

// A step keeps its bins when a run goes on with another number of ranks: each then computes more or fewer of
// them.
void Trainer::agree_on_accumulation() {
  const int world = options_.rank.world;
  bins_per_step_ = recipe_.grad_accumulation * world;
  if (!options_.resume.empty()) {
    const auto found = [&] { return choose_checkpoint(options_.resume, &resume_warning_).string(); };
    resume_ = options_.link ? options_.link->share_text(leads() ? found() : "") : found();
    const i64 before = read_state(resume_).bins_per_step;
    if (before > 0) bins_per_step_ = before;
  }
  if (bins_per_step_ % world != 0)
    throw EngineError("recipe_changed",
                      "a step of this run is " + std::to_string(bins_per_step_) + " bin(s), which " +
                          std::to_string(world) + " ranks cannot share evenly",
                      "Resume it on a number of devices that divides it, or start a new run.");
  accumulation_ = bins_per_step_ / world;
}

// The most frugal of what the ranks would choose, so that all of them do the same.
std::unique_ptr<Executor> Trainer::choose_executor_together() const {
  auto executor = choose_executor();
  if (!options_.link) return executor;
  const auto text_of = [](const Executor& e) {
    const ExecutorOptions& o = e.options();
    return std::to_string(static_cast<int>(o.sharding)) + std::to_string(static_cast<int>(o.policy)) +
           (o.keep_all ? "1" : "0");
  };
  const auto planned = [this](const std::string& text) {
    return plan_executor(
        {static_cast<Sharding>(text[0] - '0'), static_cast<RecomputePolicy>(text[1] - '0'), text[2] == '1'});
  };
  const auto chosen = options_.link->gather_texts(text_of(*executor));
  auto best = std::move(executor);
  for (const std::string& text : chosen)
    if (auto other = planned(text); other->plan().total < best->plan().total) best = std::move(other);
  const std::string all = options_.link->share_text(leads() ? text_of(*best) : "");
  return all == text_of(*best) ? std::move(best) : planned(all);
}

Trainer::StepSize Trainer::size_of_step(i64 step, const std::vector<MicroBatch>& own) const {
  StepSize size;
  const auto [rank, world] = options_.rank;
  const bool fixed = backend_->fixed_shapes();
  const i64 capacity = executor_->options().batch.tokens, first = step % steps_per_pass() * bins_per_step_;
  std::vector<i32> labels;
  for (i64 n = 0; n < bins_per_step_ && first + n < plan_.num_bins(); ++n) {
    i64 targets = 0, positions = 0, tokens = 0;
    std::vector<i64> lengths;
    for (const Placement& p : plan_.bin(first + n)) {
      tokens += p.length;
      positions += p.positions;
      lengths.push_back(p.positions);
      if (n % world == rank) continue;
      labels.clear();
      targets += append_labels(cache_, p, &labels);
    }
    if (n % world == rank) targets = own[static_cast<size_t>(n / world)].targets;
    const i64 computed = fixed ? capacity : positions;
    size.targets += targets;
    size.tokens += tokens;
    size.positions += positions;
    size.computed += computed;
    size.head_rows += recipe_.compaction ? loss_rows_of(targets, capacity, fixed) : computed;
    size.flops += step_flops(config_, layout_, lengths, recipe_.compaction ? targets : positions);
  }
  return size;
}

// Held-out bins are dealt as those of a step are; rank 0 gets all of them, in their order, so that their sum
// does not depend on how many ranks there are.
std::vector<Trainer::HeldOut> Trainer::evaluate_share() {
  const auto [rank, world] = options_.rank;
  const i64 bins = eval_plan_->num_bins();
  std::vector<HeldOut> own;
  for (i64 first = 0; first < bins; first += world) {
    if (first + rank >= bins) {
      executor_->evaluate_nothing();
      continue;
    }
    const MicroBatch m = micro_batch(*eval_cache_, *eval_plan_, first + rank);
    if (m.targets == 0) executor_->evaluate_nothing();
    const double loss = m.targets == 0 ? 0 : executor_->result(executor_->evaluate(m.sequences)).loss_sum;
    own.push_back({loss, m.targets});
  }
  if (world == 1) return own;
  const auto texts = options_.link->gather_texts(
      std::string(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(HeldOut)));
  std::vector<HeldOut> all(leads() ? static_cast<size_t>(bins) : 0);
  for (size_t b = 0; b < all.size(); ++b) {
    const auto r = b % static_cast<size_t>(world);
    std::memcpy(&all[b], texts[r].data() + b / static_cast<size_t>(world) * sizeof(HeldOut), sizeof(HeldOut));
  }
  return all;
}

// ---- what is split among ranks, read by rank 0

void Trainer::while_serving(const std::function<void()>& work) {
  if (!options_.link) return work();
  RankLink& link = *options_.link;
  Parameters& parameters = executor_->parameters();
  tell(Order::serve);
  parameters.set_fetch([&](int rank, Field field, i64 begin, i64 count, void* raw) {
    const PieceRequest wanted{static_cast<i64>(field), begin, count};
    link.send(rank, &wanted, sizeof wanted);
    link.receive(rank, raw, static_cast<size_t>(count) * dtype_bytes(parameters.type(field, Bucket::big)));
  });
  const auto end = [&] {
    const PieceRequest none{kNoMorePieces, 0, 0};
    for (int r = 1; r < link.world(); ++r) link.send(r, &none, sizeof none);
  };
  try {
    work();
  } catch (...) {
    end();
    throw;
  }
  end();
}

void Trainer::serve() {
  const Parameters& parameters = executor_->parameters();
  for (;;) {
    PieceRequest wanted;
    options_.link->receive(0, &wanted, sizeof wanted);
    if (wanted.field == kNoMorePieces) return;
    const auto field = static_cast<Field>(wanted.field);
    std::vector<char> raw(static_cast<size_t>(wanted.count) *
                          dtype_bytes(parameters.type(field, Bucket::big)));
    parameters.read_own(field, wanted.begin, wanted.count, raw.data());
    options_.link->send(0, raw.data(), raw.size());
  }
}

// ---- the others

void Trainer::follow(bool measures) {
  const Account::Clock::Watch watch;
  if (measures) {
    executor_->allocate();
    load_weights(executor_->parameters(), files_);
    started_ = last_report_ = Account::Clock::now();
    account_.begin();
  } else {
    start();
  }
  for (;;) {
    Telling told;
    options_.link->receive(0, &told, sizeof told);
    if (told.order == Order::step) {
      state_.step = told.step;
      only_measured_ = told.flag ? std::optional(Json::array()) : std::nullopt;
      take_step();
      continue;
    }
    if (told.order == Order::locate) {
      locate_non_finite(told.step, told.flag);
      continue;
    }
    report(0);
    if (told.order == Order::end) return;
    if (told.order == Order::serve)
      serve();
    else
      evaluate_share();
  }
}

void Trainer::add_ranks(Json& hello) const {
  const int world = options_.rank.world;
  hello["ranks"] = Json::array();
  for (int r = 0; r < world && !rank_processes_.empty(); ++r)
    hello["ranks"].push_back({{"rank", r},
                              {"device", options_.rank_devices[static_cast<size_t>(r)]},
                              {"pid", std::stoll(rank_processes_[static_cast<size_t>(r)])}});
  constexpr const char* kShared[] = {
      "each holds the weights and its own gradients; optimizer state is split, one share a rank (ZeRO-1)",
      "each holds the weights; gradients and optimizer state are split, one share a rank (ZeRO-2)",
      "weights, gradients and optimizer state are split, one share a rank; a layer's weights are gathered "
      "while the one before is computed (ZeRO-3)"};
  hello["kernels"].push_back({{"layerKind", "ranks"},
                              {"operation", "collectives"},
                              {"forward", collectives_ ? collectives_->name() : ""},
                              {"backward", collectives_ ? collectives_->name() : ""},
                              {"tier", "library"},
                              {"reason", std::to_string(world) + " ranks: " +
                                             kShared[static_cast<size_t>(executor_->options().sharding)]},
                              {"slow", false}});
}

}  // namespace tessera
