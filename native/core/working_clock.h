// A clock of the time in which this process could work. It stands still while the machine sleeps and while
// the process is stopped (SIGSTOP, a frozen container, a paused virtual machine): no step is charged for
// that.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tessera {

class WorkingClock {
 public:
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<WorkingClock>;
  static constexpr bool is_steady = true;

  static time_point now();
  // What was left out since the process began. Only gaps of more than two seconds are seen.
  static duration left_out();
  // Leaves out time in which somebody else kept this process waiting.
  static void leave_out(duration time);

  // While one lives a thread looks at the clock ten times a second: where it could not, nobody could work.
  class Watch {
   public:
    Watch();
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool end_ = false;
    std::thread thread_;
  };
};

}  // namespace tessera
