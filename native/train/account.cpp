#include "train/account.h"

#include "core/json.h"

namespace tessera {
namespace {

Json work_json(const Work& w) {
  return {
      {"steps", w.steps},         {"realTokens", w.real_tokens}, {"supervisedTokens", w.supervised_tokens},
      {"positions", w.positions}, {"headRows", w.head_rows},     {"milliseconds", w.ms}};
}

Json row_json(const ProfiledBackend::Row& r) {
  return {{"operation", r.operation}, {"phase", r.phase}, {"where", r.layered ? "layers" : "outside"},
          {"calls", r.calls},         {"totalMs", r.ms},  {"flops", r.flops},
          {"bytes", r.bytes}};
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  steps += other.steps;
  real_tokens += other.real_tokens;
  supervised_tokens += other.supervised_tokens;
  positions += other.positions;
  head_rows += other.head_rows;
  ms += other.ms;
  return *this;
}

void Account::add_step(const Work& step, bool cold) {
  total_ += step;
  if (cold) cold_ += step;
}

Account::Clock::time_point Account::spent(const char* part, Clock::time_point begin) {
  const auto now = Clock::now();
  parts_[part] += std::chrono::duration<double, std::milli>(now - begin).count();
  return now;
}

void Account::add_operations(const std::vector<ProfiledBackend::Row>& rows) {
  for (const auto& r : rows) {
    auto& sum = operations_
                    .try_emplace({r.operation, r.phase, r.layered},
                                 ProfiledBackend::Row{r.operation, r.phase, r.layered, 0, 0, 0, 0})
                    .first->second;
    sum.calls += r.calls;
    sum.ms += r.ms;
    sum.flops += r.flops;
    sum.bytes += r.bytes;
  }
}

void Account::add_sample(const Work& work, double span_ms) {
  sample_ += work;
  span_ms_ += span_ms;
}

Json Account::to_json(i64 from_step) const {
  const bool sampled = sample_.steps > 0;
  Json sample = work_json(sampled ? sample_ : total_), operations = Json::array();
  if (sampled) sample["spanMs"] = span_ms_;
  for (const auto& [key, row] : operations_) operations.push_back(row_json(row));
  return {{"event", "account"},       {"fromStep", from_step}, {"total", work_json(total_)},
          {"cold", work_json(cold_)}, {"parts", parts_},       {"sample", sample},
          {"operations", operations}};
}

}  // namespace tessera
