// The other ranks of a run as processes of this one: the same command, each with its number.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace tessera {

// "cuda:0,1" is {cuda:0, cuda:1}, "cpu:0,1" is {cpu, cpu}, anything else itself.
std::vector<std::string> rank_devices(const std::string& device);

class Launcher {
 public:
  // Starts ranks 1 … world-1 with this process's own arguments and `--rank r --world R --rendezvous …`. They
  // end with it. threads: of each (cpu); 0: an equal share of the cores. Throws EngineError engine_start.
  Launcher(int world, int threads);
  ~Launcher() { end(); }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  const std::filesystem::path& rendezvous() const { return rendezvous_; }
  pid_t pid(int rank) const { return pids_[static_cast<size_t>(rank)]; }
  // "" while it lives, else how it ended: "was killed by signal 9 (Killed)".
  std::string why_gone(int rank);
  void end();  // waits for them, and kills whoever is left

 private:
  void start(int rank, int world, int threads);

  std::filesystem::path folder_, rendezvous_;
  std::vector<pid_t> pids_;  // [0] is this process
  std::mutex mutex_;
  std::vector<std::string> ends_;
};

// An equal share of the cores for each rank on the CPU.
int threads_for_each(int world);

}  // namespace tessera
