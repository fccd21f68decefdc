#include "protocol/channel.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <iostream>

#include "core/json.h"
#include "core/working_clock.h"

namespace tessera {
namespace {

// What a signal handler may touch: a flag, and a pipe that wakes the reader.
std::atomic<int> g_wake{-1};

void on_signal(int) {
  const char byte = 's';
  if (const int fd = g_wake; fd >= 0) (void)!::write(fd, &byte, 1);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void emit(const Json& event) {
  static std::mutex mutex;
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::lock_guard lock(mutex);
  // Who reads may stand still for as long as it likes: that is no work either.
  const auto begin = WorkingClock::now();
  std::cout << line << std::endl;
  std::cout.clear();
  const auto held = WorkingClock::now() - begin;
  if (held > std::chrono::seconds(1)) WorkingClock::leave_out(held);
}

CommandReader::CommandReader(bool stop_at_end) : stop_at_end_(stop_at_end) {
  if (::pipe(wake_) != 0) throw EngineError("io_error", "cannot make a pipe");
  g_wake = wake_[1];
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  thread_ = std::thread([this] { read(); });
}

CommandReader::~CommandReader() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
  g_wake = -1;
  const char byte = 'q';
  (void)!::write(wake_[1], &byte, 1);
  thread_.join();
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void CommandReader::read() {
  std::string rest;
  bool open = true;
  for (;;) {
    pollfd fds[2] = {{wake_[0], POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (::poll(fds, open ? 2 : 1, -1) < 0 && errno != EINTR) return;
    if (fds[0].revents) {
      char byte = 0;
      if (::read(wake_[0], &byte, 1) == 1 && byte == 'q') return;
      push("stop");
    }
    if (!open || !fds[1].revents) continue;
    char buffer[4096];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      open = false;
      if (!rest.empty()) take_line(rest);
      if (stop_at_end_) push("parent-gone");
      const std::lock_guard lock(mutex_);
      ended_ = true;
      arrived_.notify_all();
      continue;
    }
    rest.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      take_line(rest.substr(0, end));
  }
}

void CommandReader::take_line(const std::string& line) {
  if (line.find_first_not_of(" \t\r") == std::string::npos) return;
  const Json json = Json::parse(line, nullptr, false);
  const std::string command = json.is_object() && json.contains("command") && json["command"].is_string()
                                  ? json["command"].get<std::string>()
                                  : "";
  for (const char* known : {"pause", "resume", "stop", "checkpoint", "profile"})
    if (command == known) return push(command);
  emit({{"event", "warning"},
        {"code", "unknown_command"},
        {"message", "not a command: " + line.substr(0, 200)}});
}

void CommandReader::push(std::string command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  arrived_.notify_all();
}

std::optional<std::string> CommandReader::pop() {
  if (commands_.empty()) return std::nullopt;
  std::string command = std::move(commands_.front());
  commands_.pop_front();
  return command;
}

std::optional<std::string> CommandReader::next() {
  const std::lock_guard lock(mutex_);
  return pop();
}

std::optional<std::string> CommandReader::wait(int ms) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return !commands_.empty(); });
  return pop();
}

void CommandReader::wait_for_end() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return ended_ || !commands_.empty(); });
}

}  // namespace tessera
