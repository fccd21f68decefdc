// `verify` holds on both fixtures by wide margins, and notices a single altered number.
#include "train/verify.h"

#include "support.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::TempFolder;

const fs::path kFixtures = fs::path(TESSERA_FIXTURES) / "golden";

Json verify(const fs::path& fixture, const VerifyOptions& options = {}) {
  const auto backend = make_cpu_backend({.threads = 2});
  return verify_fixture(*backend, fixture, options);
}

class Golden : public ::testing::TestWithParam<const char*> {};
TEST_P(Golden, Holds) {
  const Json report = verify(kFixtures / GetParam());
  EXPECT_TRUE(report["ok"].get<bool>()) << report.dump(1);
  EXPECT_LE(report["loss"]["relativeError"], 1e-5);
  EXPECT_LE(report["logits"]["relativeError"], 1e-4);
  EXPECT_LE(report["gradients"]["worst"]["relativeError"], 1e-3);
  EXPECT_LE(report["training"]["worstRelativeError"], 1e-3);
  EXPECT_EQ(report["training"]["losses"].size(), 8u);
  EXPECT_EQ(report["isolation"]["maxChange"], 0.0);
}
INSTANTIATE_TEST_SUITE_P(Fixtures, Golden, ::testing::Values("tiny", "real-dims"), [](const auto& info) {
  return std::string(info.param) == "tiny" ? "tiny" : "real_dims";
});

// A copy of the tiny fixture with one number of one file changed.
class Altered {
 public:
  Altered() {
    for (const char* name : {"config.json", "model.safetensors", "expected.json", "expected.safetensors"})
      fs::copy_file(kFixtures / "tiny" / name, folder_ / name);
  }
  void change(const std::string& file, const std::string& tensor, i64 element,
              const std::function<float(float)>& to) {
    std::string bytes = read_file(folder_ / file);
    size_t at = 0;
    {
      const SafetensorsFile map(folder_ / file);
      std::uint64_t header = 0;
      std::memcpy(&header, bytes.data(), 8);
      at = 8 + header + map.info(tensor).begin + static_cast<size_t>(element) * 4;
    }
    float value;
    std::memcpy(&value, bytes.data() + at, 4);
    value = to(value);
    std::memcpy(bytes.data() + at, &value, 4);
    write_file(folder_ / file, bytes);
  }
  void change_loss(size_t step, double factor) {
    Json json = read_json(folder_ / "expected.json");
    json["adamw"]["losses"][step] = json["adamw"]["losses"][step].get<double>() * factor;
    write_file(folder_ / "expected.json", json.dump());
  }
  Json report() const { return verify(folder_.path()); }

 private:
  TempFolder folder_;
};

TEST(AlteredFixture, OneWeightIsNoticed) {
  Altered fixture;
  fixture.change("model.safetensors", "model.layers.1.mlp.up_proj.weight", 4321,
                 [](float v) { return v + 0.05f; });
  const Json report = fixture.report();
  EXPECT_FALSE(report["ok"].get<bool>());
  EXPECT_FALSE(report["failures"].empty());
}

TEST(AlteredFixture, OneExpectedGradientIsNoticedByName) {
  Altered fixture;
  // A third of the tensor's root mean square: 2e-4 of its norm, which the norm alone would not see.
  fixture.change("expected.safetensors", "grad.model.embed_tokens.weight", 20000,
                 [](float v) { return v + 0.006f; });
  const Json report = fixture.report();
  EXPECT_FALSE(report["ok"].get<bool>());
  EXPECT_LT(report["gradients"]["worst"]["relativeError"], 1e-2);
  EXPECT_EQ(report["gradients"]["worstElement"]["name"], "model.embed_tokens.weight");
  EXPECT_EQ(report["gradients"]["worstElement"]["index"], 20000);
}

TEST(AlteredFixture, NanIsNoMatch) {
  Altered fixture;
  fixture.change("expected.safetensors", "grad.model.norm.weight", 3, [](float) { return std::nanf(""); });
  EXPECT_FALSE(fixture.report()["ok"].get<bool>());
}

TEST(AlteredFixture, OneTrainingLossIsNoticed) {
  Altered fixture;
  fixture.change_loss(7, 1.002);
  EXPECT_FALSE(fixture.report()["ok"].get<bool>());
}

// The yardstick of the CUDA kernels: off by what bf16 rounds, not by more.
TEST(RoundedToBf16, StaysWithinWhatBf16CanHold) {
  const Json report = verify_device("cpu", 2, "bf16", false, kFixtures / "real-dims", {});
  EXPECT_EQ(report["precision"], "bf16");
  EXPECT_GT(report["gradients"]["median"], 5e-3);
  EXPECT_LT(report["gradients"]["median"], 6e-2);
  EXPECT_GT(report["logits"]["relativeError"], 5e-3);
  EXPECT_LT(report["logits"]["relativeError"], 4e-2);
  EXPECT_LT(report["loss"]["absoluteError"], 5e-3);
  EXPECT_TRUE(report["isolation"]["ok"].get<bool>());
  EXPECT_EQ(verify_device("cpu", 2, "auto", false, kFixtures / "tiny", {})["precision"], "fp32");
}

TEST(BrokenFixture, IsRefusedByName) {
  const TempFolder folder;
  expect_error("missing_file", "expected.json", [&] { verify(folder.path()); });
  for (const char* name : {"config.json", "model.safetensors", "expected.safetensors"})
    fs::copy_file(kFixtures / "tiny" / name, folder / name);
  write_file(folder / "expected.json", "{}");
  expect_error("invalid_fixture", "adamw", [&] { verify(folder.path()); });
}

}  // namespace
}  // namespace tessera
