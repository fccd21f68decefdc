#include "core/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "support.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::TempFolder;

void write_raw(const fs::path& path, std::uint64_t header_length, const std::string& header,
               const std::string& data) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &header_length, 8);
  write_file(path, bytes + header + data);
}
void write_header(const fs::path& path, const std::string& header, size_t data_bytes) {
  write_raw(path, header.size(), header, std::string(data_bytes, '\0'));
}

TEST(Dtype, Bf16RoundsToNearestEven) {
  EXPECT_EQ(f32_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // a tie goes to the even neighbour
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isinf(bf16_to_f32(f32_to_bf16(std::numeric_limits<float>::max()))));
}

TEST(Dtype, F16SurvivesTheRoundTripForEveryValue) {
  for (std::uint32_t h = 0; h < 0x10000u; ++h) {
    const float f = f16_to_f32(static_cast<std::uint16_t>(h));
    if (!std::isnan(f)) {
      ASSERT_EQ(f32_to_f16(f), h);
    }
  }
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);         // beyond the largest: infinity
  EXPECT_EQ(f32_to_f16(1.0f + 0x1p-11f), 0x3c00);  // tie to even
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);              // tie below the smallest subnormal
}

TEST(Safetensors, ReadsWhatItWrote) {
  const TempFolder folder;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const std::vector<i32> ids = {7, 8};
  write_safetensors(folder / "a.safetensors",
                    {tensor_source("w", DType::f32, {2, 3}, values.data()),
                     tensor_source("ids", DType::i32, {2}, ids.data())},
                    R"({"format":"pt"})");
  const SafetensorsFile file(folder / "a.safetensors");
  EXPECT_EQ(file.floats("w"), values);
  EXPECT_EQ(static_cast<const i32*>(file.typed("ids", DType::i32))[1], 8);
  EXPECT_EQ(file.metadata(), R"({"format":"pt"})");
  EXPECT_FALSE(fs::exists(folder / "a.safetensors.partial"));
  expect_error("wrong_dtype", "ids", [&] { file.floats("ids"); });
  expect_error("missing_tensor", "nothing", [&] { file.info("nothing"); });
}

TEST(Safetensors, RefusesDamagedFilesNamingFileAndTensor) {
  const TempFolder folder;
  const fs::path path = folder / "bad.safetensors";
  const auto refused = [&](const std::string& fragment) {
    expect_error("damaged_safetensors", fragment, [&] { SafetensorsFile{path}; });
    expect_error("damaged_safetensors", "bad.safetensors", [&] { SafetensorsFile{path}; });
  };
  write_file(path, "abc");
  refused("3 bytes");
  write_raw(path, std::uint64_t{1} << 63, "{}", "");
  refused("9223372036854775808");
  write_raw(path, 1000, "{}", "");
  refused("1000");
  write_raw(path, 2, "[]", "");
  refused("not a JSON object");
  write_raw(path, 4, "{\"a\"", "");
  refused("not a JSON object");
  write_header(path, R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 12);  // truncated
  refused("tensor w");
  write_header(path, R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}})", 16);
  refused("does not fill");
  write_header(path, R"({"w":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,16]}})", 16);
  refused("tensor w");
  write_header(path, R"({"w":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})", 16);
  refused("tensor w");
  write_header(path, R"({"w":{"dtype":"F31","shape":[4],"data_offsets":[0,16]}})", 16);
  refused("F31");
  write_header(path, R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[16,0]}})", 16);
  refused("tensor w");
  write_header(path, R"({"w":{"shape":[4],"data_offsets":[0,16]}})", 16);
  refused("tensor w");
  write_header(
      path,
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
      12);
  refused("overlap");
  expect_error("missing_file", "nowhere", [&] { SafetensorsFile{folder / "nowhere"}; });
}

class Sharded : public ::testing::Test {
 protected:
  void SetUp() override {
    const float one = 1;
    write_safetensors(folder / "model-1.safetensors", {tensor_source("a", DType::f32, {1}, &one)}, "");
    write_safetensors(folder / "model-2.safetensors", {tensor_source("b", DType::f32, {1}, &one)}, "");
    index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}});
  }
  void index(const Json& map) {
    write_file(folder / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  }
  TempFolder folder;
};

TEST_F(Sharded, FindsTensorsInTheirShards) {
  const SafetensorsFolder files(folder.path());
  EXPECT_TRUE(files.sharded());
  EXPECT_EQ(files.file_of("b").path().filename(), "model-2.safetensors");
}

TEST_F(Sharded, NamesAMissingShard) {
  fs::remove(folder / "model-2.safetensors");
  expect_error("missing_shard", "model-2.safetensors", [&] { SafetensorsFolder{folder.path()}; });
}

TEST_F(Sharded, NamesATensorThatItsShardLacks) {
  index({{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}, {"c", "model-2.safetensors"}});
  expect_error("missing_tensor", "c (model-2.safetensors)", [&] { SafetensorsFolder{folder.path()}; });
}

TEST_F(Sharded, NamesATensorThatTheIndexLacks) {
  index({{"a", "model-1.safetensors"}});
  const float two[2] = {1, 2};
  write_safetensors(
      folder / "model-1.safetensors",
      {tensor_source("a", DType::f32, {1}, two), tensor_source("extra", DType::f32, {1}, two + 1)}, "");
  expect_error("invalid_index", "extra", [&] { SafetensorsFolder{folder.path()}; });
}

TEST_F(Sharded, RefusesShardsOutsideTheFolder) {
  index({{"a", "../model-1.safetensors"}});
  expect_error("invalid_index", "../model-1.safetensors", [&] { SafetensorsFolder{folder.path()}; });
}

}  // namespace
}  // namespace tessera
