// What steps cost on this device: the figures behind a forecast of time, and behind a comparison of kernels.
#include <limits>

#include "core/json.h"
#include "model/device.h"
#include "train/trainer.h"

namespace tessera {
namespace {

using Clock = Account::Clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

// What a device that captures graphs needs before its steps are all alike: eager, captured, launched.
constexpr i64 kWarmSteps = 3;
constexpr i64 kFewestSteps = 2;

}  // namespace

// The smallest step comes first in a measuring plan, so a slow machine is not kept long.
void Trainer::warm_up() {
  for (i64 n = 0; n < (backend_->fixed_shapes() ? kWarmSteps : 1); ++n) {
    state_.step = 0;
    take_step();
  }
  report(0);
  state_.step = 0;
  only_measured_ = Json::array();
}

Json Trainer::measure(const MeasureOptions& how) {
  executor_->allocate();
  load_weights(executor_->parameters(), files_);
  only_measured_ = Json::array();
  started_ = last_report_ = Clock::now();
  account_.begin();
  warm_up();
  const i64 most = how.passes > 0 ? how.passes * steps_per_pass() : std::numeric_limits<i64>::max();
  const auto begin = last_report_ = Clock::now();
  // What a step's time grows with.
  const auto size_of = [&](i64 step) {
    if (backend_->fixed_shapes()) return 1.0;
    i64 positions = 0;
    const i64 first = step % steps_per_pass() * bins_per_step_;
    for (i64 bin = first; bin < std::min(first + bins_per_step_, plan_.num_bins()); ++bin)
      positions += plan_.positions(bin);
    return static_cast<double>(positions);
  };
  double done = 0;
  while (state_.step < most) {
    if (state_.step >= kFewestSteps) {
      const double spent = seconds_since(begin);
      if (spent > how.seconds || spent + size_of(state_.step) / done * spent > 2 * how.seconds) break;
    }
    done += size_of(state_.step);
    take_step();
    say({{"event", "progress"},
         {"what", "measure"},
         {"done", std::min(seconds_since(begin), how.seconds)},
         {"total", how.seconds}});
  }
  report(0);
  tell(Order::end);
  return {{"device", backend_->name()},
          {"fixedShapes", backend_->fixed_shapes()},
          {"recompute", policy_name(executor_->options().policy)},
          {"kernels", kernels_json(backend_->kernels(config_.gdn, config_.attn))},
          {"steps", *only_measured_}};
}

}  // namespace tessera
