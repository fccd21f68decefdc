#include "app/commands.h"
#include "core/json.h"
#include "protocol/channel.h"
#include "protocol/nvml.h"

namespace tessera {

void add_monitor(CLI::App& app, int* status) {
  CLI::App* command = app.add_subcommand("monitor", "GPU telemetry, ten events a second until stdin ends");
  accept_json(command);
  command->callback([status] {
    const Nvml nvml;
    CommandReader commands(true);
    Json event = {{"event", "telemetry"}, {"atMs", now_ms()}, {"gpus", nvml.read_all()}};
    if (!nvml.reason().empty()) event["reason"] = nvml.reason();
    emit(event);
    if (nvml.count() == 0) {
      commands.wait_for_end();
    } else {
      while (!commands.wait(100))
        emit({{"event", "telemetry"}, {"atMs", now_ms()}, {"gpus", nvml.read_all()}});
    }
    *status = 0;
  });
}

}  // namespace tessera
