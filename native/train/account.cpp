#include "train/account.h"

#include "core/json.h"

namespace tessera {
namespace {

constexpr const char* kDamagedAccount = "damaged_checkpoint";

Json work_json(const Work& w) {
  return {
      {"steps", w.steps},         {"realTokens", w.real_tokens}, {"supervisedTokens", w.supervised_tokens},
      {"positions", w.positions}, {"headRows", w.head_rows},     {"milliseconds", w.ms}};
}

Work read_work(const Json& json, const std::string& where) {
  const auto count = [&](const char* key) { return require_field<i64>(json, key, where, kDamagedAccount); };
  return {count("steps"),
          count("realTokens"),
          count("supervisedTokens"),
          count("positions"),
          count("headRows"),
          require_field<double>(json, "milliseconds", where, kDamagedAccount)};
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

Account::Clock::time_point Account::spend(const char* part) {
  const auto begin = mark_;
  mark_ = Clock::now();
  parts_[part] += std::chrono::duration<double, std::milli>(mark_ - begin).count();
  return mark_;
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

void Account::restore(const Json& json, const std::string& where) {
  const auto field = [&](const char* key) { return require_field<Json>(json, key, where, kDamagedAccount); };
  total_ = read_work(field("total"), where);
  cold_ = read_work(field("cold"), where);
  parts_ = require_field<std::map<std::string, double>>(json, "parts", where, kDamagedAccount);
  const Json sample = field("sample");
  const bool sampled = sample.contains("spanMs");
  sample_ = sampled ? read_work(sample, where) : Work{};
  span_ms_ = sampled ? require_field<double>(sample, "spanMs", where, kDamagedAccount) : 0;
  operations_.clear();
  for (const Json& row : field("operations")) {
    const auto text = [&](const char* key) {
      return require_field<std::string>(row, key, where, kDamagedAccount);
    };
    const auto number = [&](const char* key) {
      return require_field<double>(row, key, where, kDamagedAccount);
    };
    add_operations({{text("operation"), text("phase"), text("where") == "layers",
                     require_field<i64>(row, "calls", where, kDamagedAccount), number("totalMs"),
                     number("flops"), number("bytes")}});
  }
}

}  // namespace tessera
