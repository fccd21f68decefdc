#include "ranks/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/error.h"

namespace tessera {
namespace {

// Of this process, its program left out.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> list;
  for (size_t at = 0; at < all.size(); at += list.back().size() + 1) list.emplace_back(all.c_str() + at);
  if (!list.empty()) list.erase(list.begin());
  return list;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status))
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) +
           ")";
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::vector<std::string> rank_devices(const std::string& device) {
  const size_t colon = device.find(':');
  if (colon == std::string::npos || device.find(',') == std::string::npos) return {device};
  std::vector<std::string> list;
  const std::string kind = device.substr(0, colon);
  for (size_t at = colon + 1; at <= device.size();) {
    const size_t end = std::min(device.find(',', at), device.size());
    // Ranks on the CPU share it: their numbers only tell them apart.
    list.push_back(kind == "cpu" ? kind : kind + ":" + device.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

int threads_for_each(int world) {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / world);
}

Launcher::Launcher(int world, int threads)
    : pids_(static_cast<size_t>(world)), ends_(static_cast<size_t>(world)) {
  std::string name = (std::filesystem::temp_directory_path() / "tessera-ranks-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw EngineError("engine_start", name + ": " + std::strerror(errno));
  folder_ = name;
  rendezvous_ = folder_ / "socket";
  pids_[0] = ::getpid();
  for (int r = 1; r < world; ++r) start(r, world, threads);
}

void Launcher::start(int rank, int world, int threads) {
  std::vector<std::string> arguments = own_arguments();
  for (const std::string& more : {std::string("--rank"), std::to_string(rank), std::string("--world"),
                                  std::to_string(world), std::string("--rendezvous"), rendezvous_.string()})
    arguments.push_back(more);
  const bool chosen = std::any_of(arguments.begin(), arguments.end(),
                                  [](const std::string& a) { return a.rfind("--threads", 0) == 0; });
  if (threads > 0 && !chosen) arguments.insert(arguments.end(), {"--threads", std::to_string(threads)});
  std::vector<char*> argv = {const_cast<char*>("tessera-engine")};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child < 0)
    throw EngineError("engine_start",
                      std::string("rank ") + std::to_string(rank) + ": " + std::strerror(errno));
  if (child > 0) {
    pids_[static_cast<size_t>(rank)] = child;
    return;
  }
  // From here on only what is safe between fork and exec. A Ctrl-C is for rank 0, which tells the others.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // protocol lines are rank 0's
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

std::string Launcher::why_gone(int rank) {
  const std::lock_guard lock(mutex_);
  const auto n = static_cast<size_t>(rank);
  int status = 0;
  if (ends_[n].empty() && ::waitpid(pids_[n], &status, WNOHANG) == pids_[n]) ends_[n] = describe_end(status);
  return ends_[n];
}

void Launcher::end() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (int r = 1; r < static_cast<int>(pids_.size()); ++r) {
    while (why_gone(r).empty() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!why_gone(r).empty()) continue;
    ::kill(pids_[static_cast<size_t>(r)], SIGKILL);
    int status = 0;
    ::waitpid(pids_[static_cast<size_t>(r)], &status, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace tessera
