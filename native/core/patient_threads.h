// How long idle threads of a parallel loop spin before they sleep.
#pragma once

namespace tessera {

// libgomp's default spins for milliseconds, which on a machine that is busy with anything else turns each
// short loop into a wait for the scheduler (measured: a check of 0.8 s took 18 s of processor time beside
// other work). libgomp reads its settings before main runs, so the program starts itself once more with a
// short spin, unless the user has chosen a setting. Call first in main; returns where nothing has to change.
void use_patient_threads(char** argv);

}  // namespace tessera
