#include "ranks/rank_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/json.h"

namespace tessera {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kGreetingMark = 0x7e55e7a1, kFrameMark = 0x7e55e7a2;
constexpr auto kBeatEvery = seconds(5);
// A watcher that was away itself (the machine slept, its processes were stopped) accuses nobody.
constexpr auto kAway = seconds(10);

struct Greeting {
  std::uint32_t mark, world, rank, is_life;
};
struct Frame {
  std::uint32_t mark = kFrameMark, reserved = 0;
  std::uint64_t bytes = 0;
};

[[noreturn]] void fail_socket(const std::string& what) {
  throw EngineError("io_error", what + ": " + std::strerror(errno));
}

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.string().size() >= sizeof address.sun_path)
    throw EngineError("io_error", "--rendezvous " + path.string() + " is longer than a socket's path may be",
                      "Name a shorter path, such as /tmp/ranks.");
  std::strcpy(address.sun_path, path.c_str());
  return address;
}

bool write_all(int fd, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool read_all(int fd, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

std::string rank_text(int rank) { return "rank " + std::to_string(rank); }

constexpr const char* kLostHint = "The run goes on from its newest checkpoint: resume it.";

Json lost_error(int rank, const std::string& why) {
  return {
      {"code", "rank_lost"}, {"message", rank_text(rank) + " " + why}, {"hint", kLostHint}, {"rank", rank}};
}

}  // namespace

RankLink::RankLink(RankOptions options) : options_(std::move(options)) {
  const auto world = static_cast<size_t>(options_.world);
  data_.assign(world, -1);
  life_.assign(world, -1);
  left_.assign(world, false);
  if (::pipe(wake_) != 0) fail_socket("a pipe");
  if (rank() == 0)
    meet_as_first();
  else
    meet_as_other();
  heard_.assign(world, Steady::now());
  watcher_ = std::thread([this] { watch(); });
}

RankLink::~RankLink() {
  (void)!::write(wake_[1], "q", 1);
  watcher_.join();
  for (const int fd : data_)
    if (fd >= 0) ::close(fd);
  for (const int fd : life_)
    if (fd >= 0) ::close(fd);
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void RankLink::meet_as_first() {
  const std::string path = options_.rendezvous.string();
  const sockaddr_un address = address_of(options_.rendezvous);
  ::unlink(path.c_str());
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(listener_, 2 * world()) != 0)
    fail_socket(path);
  const auto deadline = Steady::now() + options_.meet_within;
  for (int missing = 2 * (world() - 1); missing > 0;) {
    pollfd waiting{listener_, POLLIN, 0};
    if (::poll(&waiting, 1, 100) <= 0) {
      for (int r = 1; r < world(); ++r) {
        const bool here = data_of(r) >= 0 && life_[static_cast<size_t>(r)] >= 0;
        const std::string why = here ? "" : options_.why_gone(r);
        if (!why.empty() || (!here && Steady::now() > deadline))
          throw EngineError(
              "rank_lost",
              rank_text(r) + " " + (why.empty() ? "has not come to " + path : why + " before it began"),
              "Start all ranks with the same --world and --rendezvous; its last words are in the log.");
      }
      continue;
    }
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    Greeting g{};
    if (fd < 0 || !read_all(fd, &g, sizeof g) || g.mark != kGreetingMark) {
      if (fd >= 0) ::close(fd);
      continue;
    }
    const bool fits = g.world == static_cast<std::uint32_t>(world()) && g.rank > 0 && g.rank < g.world;
    int* slot = fits ? &(g.is_life ? life_ : data_)[g.rank] : nullptr;
    if (!slot || *slot >= 0)
      throw EngineError("ranks_disagree",
                        "rank " + std::to_string(g.rank) + " of " + std::to_string(g.world) +
                            " came to a run of " + std::to_string(world()) + " ranks" +
                            (slot ? ", which has one of that number" : ""),
                        "Give every rank its own --rank and the same --world.");
    *slot = fd;
    --missing;
  }
  ::close(listener_);
  ::unlink(path.c_str());
}

void RankLink::meet_as_other() {
  const sockaddr_un address = address_of(options_.rendezvous);
  const auto deadline = Steady::now() + options_.meet_within;
  for (const bool is_life : {false, true}) {
    for (;;) {
      const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd < 0) fail_socket("a socket");
      if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        const Greeting g{kGreetingMark, static_cast<std::uint32_t>(world()),
                         static_cast<std::uint32_t>(rank()), is_life};
        (is_life ? life_ : data_)[0] = fd;
        if (!write_all(fd, &g, sizeof g)) throw EngineError("rank_lost", "rank 0 has gone");
        break;
      }
      ::close(fd);
      if (Steady::now() > deadline)
        throw EngineError("rank_lost", "rank 0 is not at " + options_.rendezvous.string(),
                          "Start all ranks with the same --rendezvous.");
      std::this_thread::sleep_for(milliseconds(20));
    }
  }
}

// ---- data

// The life line knows who has died and says so; this thread only must not go on.
void RankLink::wait_for_end(int peer) {
  std::this_thread::sleep_for(seconds(10));
  throw EngineError("rank_lost", rank_text(peer) + " has gone", kLostHint);
}

void RankLink::send(int to, const void* data, size_t bytes) {
  Frame frame;
  frame.bytes = bytes;
  if (!write_all(data_of(to), &frame, sizeof frame) || !write_all(data_of(to), data, bytes)) wait_for_end(to);
}

void RankLink::receive(int from, void* data, size_t bytes) {
  Frame frame;
  if (!read_all(data_of(from), &frame, sizeof frame)) wait_for_end(from);
  if (frame.mark != kFrameMark || frame.bytes != bytes)
    throw EngineError("ranks_disagree",
                      rank_text(from) + " sent " + std::to_string(frame.bytes) + " bytes where " +
                          rank_text(rank()) + " awaits " + std::to_string(bytes),
                      "All ranks must be the same program with the same files.");
  if (!read_all(data_of(from), data, bytes)) wait_for_end(from);
}

void RankLink::send_text(int to, const std::string& text) {
  const std::uint64_t size = text.size();
  send(to, &size, sizeof size);
  send(to, text.data(), text.size());
}

std::string RankLink::receive_text(int from) {
  std::uint64_t size = 0;
  receive(from, &size, sizeof size);
  std::string text(size, '\0');
  receive(from, text.data(), size);
  return text;
}

std::string RankLink::share_text(const std::string& text) {
  if (rank() > 0) return receive_text(0);
  for (int r = 1; r < world(); ++r) send_text(r, text);
  return text;
}

std::vector<std::string> RankLink::gather_texts(const std::string& text) {
  if (rank() > 0) {
    send_text(0, text);
    return {};
  }
  std::vector<std::string> all = {text};
  for (int r = 1; r < world(); ++r) all.push_back(receive_text(r));
  return all;
}

// ---- life

void RankLink::beat() {
  const std::lock_guard lock(mutex_);
  for (const int fd : life_)
    if (fd >= 0) write_all(fd, "b", 1);
}

void RankLink::watch() {
  auto last_look = Steady::now(), last_beat = last_look;
  for (;;) {
    std::vector<pollfd> fds = {{wake_[0], POLLIN, 0}};
    std::vector<int> peers = {-1};
    for (int r = 0; r < world(); ++r)
      if (life_[static_cast<size_t>(r)] >= 0 && !left_[static_cast<size_t>(r)]) {
        fds.push_back({life_[static_cast<size_t>(r)], POLLIN, 0});
        peers.push_back(r);
      }
    ::poll(fds.data(), fds.size(), 1000);
    if (fds[0].revents) return;
    const auto now = Steady::now();
    if (now - last_look > kAway) heard_.assign(heard_.size(), now);
    last_look = now;
    for (size_t n = 1; n < fds.size(); ++n) {
      const auto peer = static_cast<size_t>(peers[n]);
      if (fds[n].revents) {
        heard_[peer] = now;
        hear(peers[n]);
      } else if (now - heard_[peer] > options_.silent_within) {
        const auto waited = std::chrono::duration_cast<seconds>(now - heard_[peer]).count();
        lose(peers[n],
             lost_error(peers[n], "has given no sign of life for " + std::to_string(waited) + " s"));
      }
    }
    if (now - last_beat > kBeatEvery) {
      beat();
      last_beat = now;
    }
  }
}

void RankLink::hear(int peer) {
  const int fd = life_[static_cast<size_t>(peer)];
  char kind = 0;
  if (!read_all(fd, &kind, 1)) {
    std::string why;
    // Its process is gone a moment after its sockets are.
    for (int n = 0; n < 50 && (why = options_.why_gone(peer)).empty(); ++n)
      std::this_thread::sleep_for(milliseconds(20));
    return lose(peer, lost_error(peer, why.empty() ? "has gone without a word" : why));
  }
  if (kind == 'g') {
    const std::lock_guard lock(mutex_);
    left_[static_cast<size_t>(peer)] = true;
    has_left_.notify_all();
  }
  if (kind != 'e') return;
  std::uint32_t size = 0;
  if (!read_all(fd, &size, sizeof size)) return lose(peer, lost_error(peer, "has gone without a word"));
  std::string text(size, '\0');
  if (!read_all(fd, text.data(), size)) return lose(peer, lost_error(peer, "has gone without a word"));
  lose(peer, Json::parse(text, nullptr, false));
}

void RankLink::tell_error(const Json& error) {
  const std::string text = error.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto size = static_cast<std::uint32_t>(text.size());
  const std::lock_guard lock(mutex_);
  for (const int fd : life_)
    if (fd >= 0)
      write_all(fd, "e", 1) && write_all(fd, &size, sizeof size) && write_all(fd, text.data(), size);
}

void RankLink::lose(int peer, const Json& error) {
  {
    const std::lock_guard lock(mutex_);
    if (leaving_) {  // what becomes of the others is told by their parent
      left_[static_cast<size_t>(peer)] = true;
      has_left_.notify_all();
      return;
    }
  }
  if (rank() == 0) tell_error(error);
  if (options_.on_lost) options_.on_lost(error);
  std::_Exit(1);
}

void RankLink::leave() {
  const auto say = [this] {
    for (const int fd : life_)
      if (fd >= 0) write_all(fd, "g", 1);
  };
  std::unique_lock lock(mutex_);
  if (rank() > 0) say();
  has_left_.wait_for(lock, options_.silent_within, [this] {
    for (size_t r = 0; r < life_.size(); ++r)
      if (life_[r] >= 0 && !left_[r]) return false;
    return true;
  });
  leaving_ = true;
  if (rank() == 0) say();
}

void RankLink::fail(const EngineError& error) {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  tell_error({{"code", error.code()}, {"message", error.what()}, {"hint", error.hint()}, {"rank", rank()}});
}

}  // namespace tessera
