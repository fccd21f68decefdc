// The first event of the protocol: what this engine is and what it finds on this machine.
#pragma once

#include "core/json_fwd.h"

namespace tessera {

// {event, protocol, version, backends, devices: [{device, name?, memoryBytes?, freeBytes?}], libraries,
// kernels}
Json hello_event(const Json& kernels);

}  // namespace tessera
