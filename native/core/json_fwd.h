// The name of the JSON type, for headers that only pass it on: the full header costs seconds in every file.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tessera {
using Json = nlohmann::json;
}
