#include "app/commands.h"

#include <iostream>

#include "core/json.h"

namespace tessera {

std::vector<AddCommand> command_list() {
  return {add_bench, add_generate, add_hello, add_init, add_monitor, add_train, add_verify};
}

void print_json(const Json& value) {
  std::cout << value.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

}  // namespace tessera
