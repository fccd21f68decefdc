// The measuring backend, and the account of where a run's time goes.
#include "train/profile.h"

#include <chrono>
#include <thread>

#include "core/json.h"
#include "model/profiled_backend.h"
#include "support.h"
#include "train/account.h"

namespace tessera {
namespace {

TEST(ProfiledBackend, CountsCallsByOperationPhaseAndPlace) {
  const auto cpu = make_cpu_backend({.threads = 1});
  ProfiledBackend backend(*cpu);
  std::vector<float> x(64 * 32, 1.0f), w(16 * 32, 1.0f), y(64 * 16);
  backend.linear_fwd(y.data(), x.data(), w.data(), nullptr, 64, 16, 32);
  EXPECT_TRUE(backend.rows().empty()) << "nothing is measured before it is asked for";
  backend.enable(true);
  backend.scope("forward", 3);
  for (int n = 0; n < 2; ++n) backend.linear_fwd(y.data(), x.data(), w.data(), nullptr, 64, 16, 32);
  backend.scope("recompute", 3);
  backend.linear_fwd(y.data(), x.data(), w.data(), nullptr, 64, 16, 32);
  backend.scope("forward", -1);
  backend.linear_fwd(y.data(), x.data(), w.data(), nullptr, 64, 16, 32);
  const auto rows = backend.rows();
  ASSERT_EQ(rows.size(), 3u);
  i64 calls = 0;
  for (const auto& row : rows) {
    EXPECT_EQ(row.operation, "linear_fwd");
    EXPECT_GT(row.ms, 0);
    EXPECT_DOUBLE_EQ(row.flops, 2.0 * 64 * 16 * 32 * static_cast<double>(row.calls));
    EXPECT_DOUBLE_EQ(row.bytes, 4.0 * (64 * 32 + 32 * 16 + 64 * 16) * static_cast<double>(row.calls));
    calls += row.calls;
  }
  EXPECT_EQ(calls, 4);
  backend.clear();
  EXPECT_TRUE(backend.rows().empty());
}

TEST(ProfiledBackend, KeepsEveryCallApartWhileTracing) {
  const auto cpu = make_cpu_backend({.threads = 1});
  ProfiledBackend backend(*cpu);
  std::vector<float> x(1024);
  backend.enable(true);
  backend.zero(x.data(), 16);
  backend.trace(true);
  backend.scope("backward", 5);
  backend.zero(x.data(), 16);
  backend.copy(x.data() + 512, x.data(), 64);
  backend.trace(false);
  backend.zero(x.data(), 16);
  ASSERT_EQ(backend.spans().size(), 2u);
  const OpSpan& first = backend.spans()[0];
  const OpSpan& second = backend.spans()[1];
  EXPECT_STREQ(first.op, "zero");
  EXPECT_STREQ(second.op, "copy");
  EXPECT_STREQ(second.phase, "backward");
  EXPECT_EQ(second.layer, 5);
  EXPECT_GE(first.begin_ms, 0);
  EXPECT_GE(second.begin_ms, first.begin_ms + first.ms);
  const Json timeline = timeline_json(backend.spans());
  EXPECT_EQ(timeline["names"], Json({"zero", "copy"}));
  EXPECT_EQ(timeline["spans"][0][3], 0.0);
}

// A device as far as the host's table is concerned: its batches have fixed shapes.
class FixedShapes : public ProfiledBackend {
 public:
  using ProfiledBackend::ProfiledBackend;
  bool fixed_shapes() const override { return true; }
};

TEST(ProfiledBackend, CountsATimeOnceWhereTheHostWaitsWithinItsWork) {
  const auto cpu = make_cpu_backend({.threads = 1});
  FixedShapes fixed(*cpu);
  Backend& device = fixed;
  ProfiledBackend backend(device);
  std::vector<char> large(1 << 24);
  backend.enable(true);
  const auto begin = WorkingClock::now();
  backend.host("read scalars", [&] {
    backend.zero(large.data(), large.size());
    return 0;
  });
  const std::chrono::duration<double, std::milli> passed = WorkingClock::now() - begin;
  const auto rows = backend.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NE(rows[0].operation, rows[1].operation);
  EXPECT_GT(rows[0].ms, 0);
  EXPECT_LE(rows[0].ms + rows[1].ms, passed.count()) << "the whole counted in neither part of it";
}

// What measuring costs is printed; the limit only catches a mistake such as a lock or an allocation a call.
TEST(ProfiledBackend, CostsLittle) {
  const auto cpu = make_cpu_backend({.threads = 1});
  ProfiledBackend backend(*cpu);
  char byte[64];
  constexpr int kCalls = 200'000;
  const auto ns_a_call = [&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int n = 0; n < kCalls; ++n) backend.zero(byte, 1);
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() /
           kCalls;
  };
  const double off = ns_a_call();
  backend.enable(true);
  const double on = ns_a_call();
  std::printf("measuring a call: %.0f ns\n", on - off);
  EXPECT_LT(on - off, 5000);
}

TEST(Account, SumsStepsPartsAndOperations) {
  Account account;
  account.add_step({1, 100, 50, 128, 64, 12.0}, true);
  account.add_step({1, 100, 50, 128, 64, 8.0}, false);
  account.begin();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  account.spend("data");
  account.add_operations({{"linear_fwd", "forward", true, 2, 3.0, 10.0, 20.0}});
  account.add_operations({{"linear_fwd", "forward", true, 1, 1.0, 5.0, 10.0},
                          {"linear_fwd", "forward", false, 1, 2.0, 5.0, 10.0}});
  const Json json = account.to_json(7);
  EXPECT_EQ(json["fromStep"], 7);
  EXPECT_EQ(json["total"]["milliseconds"], 20.0);
  EXPECT_EQ(json["total"]["positions"], 256);
  EXPECT_EQ(json["cold"]["milliseconds"], 12.0);
  EXPECT_EQ(json["sample"], json["total"]) << "without samples every step was measured";
  EXPECT_GE(json["parts"]["data"].get<double>(), 5.0);
  ASSERT_EQ(json["operations"].size(), 2u);
  account.add_sample({1, 100, 50, 128, 64, 9.0}, 8.5);
  const Json sampled = account.to_json(7);
  EXPECT_EQ(sampled["sample"]["steps"], 1);
  EXPECT_EQ(sampled["sample"]["spanMs"], 8.5);
  for (const Json& kept : {json, sampled}) {
    Account resumed;
    resumed.restore(kept, "state.json");
    EXPECT_EQ(resumed.to_json(7), kept) << "a checkpoint keeps it whole";
  }
  testing::expect_error("damaged_checkpoint", "milliseconds", [&] {
    Json damaged = json;
    damaged["total"].erase("milliseconds");
    Account().restore(damaged, "state.json");
  });
}

TEST(Profile, ARowsShareOfItsRoofIsTheSlowerFloorOverItsTime) {
  // 1e9 flop at 1e12/s: 1 ms; 4e6 bytes at 1e9/s: 4 ms; measured 8 ms.
  const Json rows = host_rows({{"linear_fwd", "forward", true, 4, 8.0, 1e9, 4e6}}, {1e12, 1e9});
  EXPECT_DOUBLE_EQ(rows[0]["percentOfRoof"], 50.0);
  EXPECT_DOUBLE_EQ(rows[0]["couldSaveMs"], 4.0);
  EXPECT_DOUBLE_EQ(rows[0]["averageUs"], 2000.0);
  EXPECT_FALSE(
      host_rows({{"linear_fwd", "forward", true, 4, 8.0, 1e9, 4e6}}, {})[0].contains("percentOfRoof"));
}

TEST(CpuBackend, MeasuresItsRoof) {
  const auto cpu = make_cpu_backend({.threads = 1});
  const DeviceRoof roof = cpu->roof();
  EXPECT_GT(roof.flops_per_second, 1e8);
  EXPECT_GT(roof.bytes_per_second, 1e8);
  EXPECT_EQ(cpu->roof().flops_per_second, roof.flops_per_second) << "measured once";
}

}  // namespace
}  // namespace tessera
