#include <memory>

#include "app/commands.h"
#include "model/device.h"

namespace tessera {

void add_hello(CLI::App& app, int* status) {
  CLI::App* command = app.add_subcommand("hello", "Devices, libraries and kernels");
  accept_json(command);
  command->callback([status] { print_json({{"event", "hello"}}); *status = 0; });
}

}  // namespace tessera
