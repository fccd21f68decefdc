#include "core/patient_threads.h"

#include <cstdlib>

#ifdef __linux__
#include <unistd.h>
#endif

namespace tessera {

void use_patient_threads(char** argv) {
#ifdef __linux__
  // Some microseconds: the time between two loops of one step, and no more.
  constexpr const char* kSpins = "3000";
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("GOMP_SPINCOUNT", kSpins, 1);
  execv("/proc/self/exe", argv);
  // Where that is not possible the program goes on as it is: slower on a busy machine, not wrong.
#endif
}

}  // namespace tessera
