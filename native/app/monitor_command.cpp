#include <algorithm>
#include <chrono>

#include "app/commands.h"
#include "core/json.h"
#include "protocol/channel.h"
#include "protocol/nvml.h"

namespace tessera {

void add_monitor(CLI::App& app, int* status) {
  CLI::App* command = app.add_subcommand("monitor", "GPU telemetry, ten events a second until stdin ends");
  accept_json(command);
  command->callback([status] {
    Nvml nvml;
    CommandReader commands(true);
    Json event = {{"event", "telemetry"}, {"atMs", now_ms()}, {"gpus", nvml.read_all()}};
    if (!nvml.reason().empty()) event["reason"] = nvml.reason();
    emit(event);
    if (nvml.count() == 0) commands.wait_for_end();
    using Clock = std::chrono::steady_clock;
    constexpr auto kPeriod = std::chrono::milliseconds(100);
    auto next = Clock::now() + kPeriod;
    // Each GPU's slow fields are renewed about once a second.
    for (int tick = 0; nvml.count() > 0; ++tick) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
      if (commands.wait(static_cast<int>(std::max<std::int64_t>(0, left)))) break;
      emit({{"event", "telemetry"}, {"atMs", now_ms()}, {"gpus", nvml.read_all()}});
      if (tick % std::max(1, 10 / nvml.count()) == 0) nvml.read_slow(tick / std::max(1, 10 / nvml.count()));
      next = std::max(next + kPeriod, Clock::now());  // after a suspended machine: no burst
    }
    *status = 0;
  });
}

}  // namespace tessera
