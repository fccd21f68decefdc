#include "core/working_clock.h"

#include <time.h>

#include <algorithm>

namespace tessera {
namespace {

using Nanoseconds = std::chrono::nanoseconds;
constexpr Nanoseconds kBeat = std::chrono::milliseconds(100), kGap = std::chrono::seconds(2);

std::mutex g_mutex;
Nanoseconds g_left_out{0};
Nanoseconds g_seen{0};  // when somebody last looked
Nanoseconds g_beat{0};  // when the watch last looked; 0: there is none

// Goes on while the machine sleeps, so that sleep is a gap like any other.
Nanoseconds raw_now() {
  timespec t{};
#ifdef CLOCK_BOOTTIME
  ::clock_gettime(CLOCK_BOOTTIME, &t);
#else
  ::clock_gettime(CLOCK_MONOTONIC, &t);
#endif
  return std::chrono::seconds(t.tv_sec) + Nanoseconds(t.tv_nsec);
}

// Whoever looks first after a gap leaves it out, from the last moment that anybody saw: the clock never goes
// back.
Nanoseconds look() {
  const Nanoseconds now = raw_now();
  if (g_beat.count() > 0 && now - g_beat > kGap) {
    g_left_out += now - std::max(g_beat, g_seen);
    g_beat = now;
  }
  g_seen = now;
  return now;
}

}  // namespace

WorkingClock::time_point WorkingClock::now() {
  const std::lock_guard lock(g_mutex);
  const Nanoseconds now = look();
  return time_point(now - g_left_out);
}

WorkingClock::duration WorkingClock::left_out() {
  const std::lock_guard lock(g_mutex);
  look();
  return g_left_out;
}

void WorkingClock::leave_out(duration time) {
  const std::lock_guard lock(g_mutex);
  g_left_out += time;
}

WorkingClock::Watch::Watch() {
  thread_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    do {
      const std::lock_guard shared(g_mutex);
      g_beat = g_beat.count() == 0 ? raw_now() : look();
    } while (!ended_.wait_for(lock, kBeat, [this] { return end_; }));
  });
}

WorkingClock::Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
  const std::lock_guard shared(g_mutex);
  g_beat = {};
}

}  // namespace tessera
