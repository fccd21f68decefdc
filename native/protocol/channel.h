// The engine's side of the protocol: events out, commands in, one JSON object a line.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/json_fwd.h"

namespace tessera {

inline constexpr int kProtocolVersion = 1;

std::int64_t now_ms();  // UTC milliseconds

// Writes one event as one line of stdout and flushes it. Safe from several threads. A reader that has gone
// away is no error here: the run is told by its stdin.
void emit(const Json& event);

// Reads commands ({"command":"pause"}) from stdin on its own thread. A line that is no command is answered by
// a warning event. SIGINT and SIGTERM arrive as the command "stop".
class CommandReader {
 public:
  // stop_at_end: the end of stdin means that the parent has gone; it becomes the command "parent-gone".
  explicit CommandReader(bool stop_at_end);
  ~CommandReader();
  CommandReader(const CommandReader&) = delete;
  CommandReader& operator=(const CommandReader&) = delete;
  std::optional<std::string> next();        // at once
  std::optional<std::string> wait(int ms);  // within ms
  void wait_for_end();                      // of stdin, or a signal

 private:
  void read();
  void push(std::string command);
  void take_line(const std::string& line);
  std::optional<std::string> pop();

  const bool stop_at_end_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> commands_;
  bool ended_ = false;
  int wake_[2] = {-1, -1};  // a pipe that ends the reading thread
  std::thread thread_;
};

}  // namespace tessera
