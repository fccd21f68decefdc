// Where the time of a run goes: every millisecond of its steps in a named place, operation by operation, and
// what it did beside its steps. One running sum per run: a checkpoint keeps it, so that steps which are
// trained again after it count once; the core keeps the newest.
//
// On a backend that computes within the call (cpu) every step is measured whole. One that runs behind the
// host (cuda) is measured in sampled steps; `sample` says how much work those were.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "core/json_fwd.h"
#include "core/working_clock.h"
#include "model/profiled_backend.h"

namespace tessera {

// Work done: positions are those computed, padding and the tail of fixed shapes included; head_rows those of
// the logits.
struct Work {
  i64 steps = 0, real_tokens = 0, supervised_tokens = 0, positions = 0, head_rows = 0;
  double ms = 0;
  Work& operator+=(const Work& other);
};

class Account {
 public:
  using Clock = WorkingClock;

  void begin() { mark_ = Clock::now(); }
  // Gives the time since the last call (or begin()) to a part of the steps ("data", "engine", "reporting") or
  // beside them ("load", "evaluation", "checkpoint", "paused", "profiling"), and returns now. So no time lies
  // between parts.
  Clock::time_point spend(const char* part);
  // cold: something ran for the first time in it (libraries chose algorithms, a graph was captured).
  void add_step(const Work& step, bool cold);
  // Times of operations: of all steps, or of sampled ones, each of which add_sample() names.
  void add_operations(const std::vector<ProfiledBackend::Row>& rows);
  // span_ms: from the first device operation's begin to the last one's end.
  void add_sample(const Work& work, double span_ms);
  // {fromStep, total, cold, parts {data, engine, …: ms}, sample {…, spanMs?}, operations [{operation, phase,
  // where, calls, totalMs, flops, bytes}]}; cold: those steps of the total; without a sample every step was
  // measured, and `sample` is the total.
  Json to_json(i64 from_step) const;
  // Goes on from what to_json() gave; `where` names its file. Throws damaged_checkpoint, naming the field.
  void restore(const Json& json, const std::string& where);

 private:
  Clock::time_point mark_;
  Work total_, cold_, sample_;
  double span_ms_ = 0;
  std::map<std::string, double> parts_;  // ms
  std::map<std::tuple<std::string, std::string, bool>, ProfiledBackend::Row> operations_;
};

}  // namespace tessera
