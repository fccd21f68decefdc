#include "model/boundaries.h"

#include <string>

#include "core/error.h"

namespace tessera {

void check_boundaries(std::span<const i32> cu, i64 positions) {
  const auto refuse = [](const std::string& why) {
    throw EngineError("bad_boundaries", "the boundaries of a micro-batch's sequences: " + why,
                      "Nothing was launched. Make the plan again for this cache.");
  };
  if (cu.empty()) refuse("there are none");
  if (cu.front() != 0) refuse("entry 0 is " + std::to_string(cu.front()) + ", not 0");
  for (size_t n = 1; n < cu.size(); ++n)
    if (cu[n] < cu[n - 1])
      refuse("entry " + std::to_string(n) + " falls from " + std::to_string(cu[n - 1]) + " to " +
             std::to_string(cu[n]));
  if (cu.back() != positions)
    refuse("the last is " + std::to_string(cu.back()) + ", the stream has " + std::to_string(positions) +
           " positions");
}

}  // namespace tessera
