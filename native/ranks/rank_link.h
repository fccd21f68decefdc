// What joins the processes of one run on one machine: a socket between rank 0 and every other for their data,
// and one for their lives.
//
// A rank that dies, fails or falls silent ends the run: whatever the others are doing, also inside a
// collective that will never be answered, each of them ends its process (which frees its memory), and rank 0
// says who it was.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/json_fwd.h"

namespace tessera {

struct RankOptions {
  int rank = 0, world = 1;
  std::filesystem::path rendezvous;  // a socket that rank 0 makes there
  // Rank 0: what is known of a rank's process, "" while it lives ("was killed by SIGKILL").
  std::function<std::string(int rank)> why_gone = [](int) { return std::string(); };
  std::chrono::milliseconds meet_within{60'000};
  // Longer without a sign of life is death: a stopped process answers no collective.
  std::chrono::milliseconds silent_within{45'000};
  // Called once, from a thread of its own, when the run is lost: {code, message, hint, rank}. Must not
  // return.
  std::function<void(const Json& error)> on_lost;
};

class RankLink {
 public:
  // Waits until all ranks are there. Throws rank_lost | ranks_disagree | io_error.
  explicit RankLink(RankOptions options);
  ~RankLink();  // without leave() before, the others take it for a death
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  int rank() const { return options_.rank; }
  int world() const { return options_.world; }

  // Between rank 0 and another. The receiver must ask for as many bytes as were sent.
  void send(int to, const void* data, size_t bytes);
  void receive(int from, void* data, size_t bytes);
  void send_text(int to, const std::string& text);
  std::string receive_text(int from);
  // The same value for all: rank 0's.
  std::string share_text(const std::string& text);
  // Rank 0: those of all ranks, in their order; elsewhere nothing.
  std::vector<std::string> gather_texts(const std::string& text);

  void leave();                         // waits until all have come to their end
  void fail(const EngineError& error);  // tells the others why this rank ends

 private:
  void meet_as_first();
  void meet_as_other();
  void watch();
  void hear(int peer);  // one message of its life line, or its end
  void lose(int peer, const Json& error);
  void tell_error(const Json& error);
  [[noreturn]] void wait_for_end(int peer);
  void beat();
  int& data_of(int peer) { return data_[static_cast<size_t>(peer)]; }

  RankOptions options_;
  int listener_ = -1;
  std::vector<int> data_, life_;  // by rank; of others than rank 0 only [0]
  std::vector<std::chrono::steady_clock::time_point> heard_;
  std::mutex mutex_;  // of what is written to life lines, and of the next three
  std::condition_variable has_left_;
  std::vector<bool> left_;
  bool leaving_ = false;
  int wake_[2] = {-1, -1};
  std::thread watcher_;
};

}  // namespace tessera
