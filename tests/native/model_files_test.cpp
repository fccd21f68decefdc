// Configs and tensor tables: what is accepted, and every refusal by name.
#include "model/decoder.h"
#include "model/save.h"
#include "support.h"

namespace tessera {
namespace {

using testing::expect_error;
using testing::small_config;
using testing::TempFolder;

ModelConfig parse(const Json& json) { return parse_config(json, "config.json"); }

TEST(Config, ReadsTheFlatAndTheNestedForm) {
  const ModelConfig flat = parse(small_config());
  EXPECT_EQ(flat.attn.rotary_dim, 8);
  EXPECT_EQ(flat.gdn.conv_dim(), 32);
  EXPECT_TRUE(flat.tied);
  Json text = small_config();
  text.erase("architectures");
  const ModelConfig nested = parse({{"model_type", "qwen3_5"},
                                    {"architectures", {"Qwen3_5ForConditionalGeneration"}},
                                    {"text_config", text},
                                    {"vision_config", {{"depth", 2}}}});
  EXPECT_EQ(nested.hidden, flat.hidden);
}

TEST(Config, ReadsRopeFromTheTopLevelAndLayersFromTheInterval) {
  Json c = small_config();
  c.erase("rope_parameters");
  c["rope_theta"] = 5000.0;
  c["partial_rotary_factor"] = 0.25;
  c.erase("layer_types");
  c["num_hidden_layers"] = 8;
  c["full_attention_interval"] = 4;
  const ModelConfig m = parse(c);
  EXPECT_EQ(m.rope_theta, 5000.0);
  EXPECT_EQ(m.attn.rotary_dim, 4);
  EXPECT_EQ(m.layers[3], LayerKind::full_attention);
  EXPECT_EQ(m.layers[4], LayerKind::linear_attention);
}

TEST(Config, RefusesOtherArchitecturesByName) {
  const auto refused = [](const char* key, const Json& value, const std::string& fragment) {
    Json c = small_config();
    c[key] = value;
    expect_error("unsupported_model", fragment, [&] { parse(c); });
  };
  refused("model_type", "qwen3_next", "qwen3_next");
  refused("model_type", "llama", "llama");
  refused("architectures", {"Qwen4ForCausalLM"}, "Qwen4ForCausalLM");
  refused("num_experts", 8, "num_experts");
  refused("attention_bias", true, "attention_bias");
  refused("hidden_act", "gelu", "gelu");
  refused("output_gate_type", "sigmoid", "sigmoid");
  refused("attn_output_gate", false, "attn_output_gate");
  refused("layer_types", {"linear_attention", "sliding_attention", "full_attention"}, "sliding_attention");
  refused("rope_parameters", {{"rope_theta", 1e4}, {"rope_type", "yarn"}}, "yarn");
}

TEST(Config, RefusesImpossibleValuesByName) {
  const auto refused = [](const char* key, const Json& value, const std::string& fragment) {
    Json c = small_config();
    c[key] = value;
    expect_error("invalid_config", fragment, [&] { parse(c); });
  };
  refused("hidden_size", nullptr, "hidden_size");
  refused("hidden_size", "wide", "hidden_size");
  refused("hidden_size", 0, "hidden_size");
  refused("layer_types", {"full_attention"}, "layer_types");
  refused("linear_num_key_heads", 3, "linear_num_value_heads");
  refused("num_key_value_heads", 3, "num_attention_heads");
}

TEST(Tensors, AreComparedWithTheConfigBeforeAnythingElse) {
  const TempFolder folder;
  testing::write_small_model(folder.path());
  const auto check = [&](const Json& json) {
    const ModelConfig config = parse(json);
    const SafetensorsFolder files(folder.path());
    check_tensors(make_layout(config, "model."), files, "model.", config.tied);
  };
  check(small_config());
  Json c = small_config();
  c["tie_word_embeddings"] = false;
  expect_error("missing_tensor", "lm_head.weight", [&] { check(c); });
  c = small_config();
  c["intermediate_size"] = 41;
  expect_error("wrong_shape", "model.layers.0.mlp.down_proj.weight is [24, 40], the config asks for [24, 41]",
               [&] { check(c); });
  c = small_config();
  c["num_hidden_layers"] = 2;
  c["layer_types"] = {"linear_attention", "linear_attention"};
  expect_error("unknown_tensor", "model.layers.2.", [&] { check(c); });
}

TEST(Saving, KeepsNamesDtypesAndUntrainedTensorsByteForByte) {
  const TempFolder source, target;
  const Json json = small_config();
  testing::write_small_model(source.path(), json, DType::bf16);
  // A multimodal checkpoint's own tensors, one of a type that the engine does not compute with.
  const SafetensorsFile plain(source / "model.safetensors");
  std::vector<TensorSource> tensors;
  for (const auto& [name, info] : plain.tensors())
    tensors.push_back(tensor_source(name, *dtype_from_safetensors(info.dtype), info.shape, plain.data(name)));
  const std::vector<u8> pixels = {1, 2, 3, 250};
  tensors.push_back(tensor_source("model.visual.patch", DType::u8, {4}, pixels.data()));
  write_safetensors(source / "mixed.safetensors", tensors, R"({"format":"pt"})");
  fs::rename(source / "mixed.safetensors", source / "model.safetensors");

  const SafetensorsFolder files(source.path());
  testing::SmallRun run;
  check_tensors(run.layout, files, "model.", true);
  load_weights(run.executor->parameters(), files);
  save_weights(run.executor->parameters(), files, true, target.path());
  EXPECT_EQ(read_file(source / "model.safetensors"), read_file(target / "model.safetensors"));
}

// The recurrent decoder and the packed, chunked executor are two ways to the same logits.
TEST(Decoder, AgreesWithTheExecutor) {
  const TempFolder folder;
  testing::write_small_model(folder.path());
  const testing::Packed packed({70});
  testing::SmallRun run;
  load_weights(run.executor->parameters(), SafetensorsFolder(folder.path()));
  const auto want = run.executor->logits(packed.sequences());
  Decoder decoder(folder.path());
  double difference = 0, norm = 0;
  for (size_t t = 0; t < packed.ids[0].size(); ++t) {
    const auto& got = decoder.step(packed.ids[0][t]);
    for (size_t v = 0; v < got.size(); ++v) {
      const double w = want[t * got.size() + v];
      difference += (got[v] - w) * (got[v] - w);
      norm += w * w;
    }
  }
  EXPECT_LT(std::sqrt(difference / norm), 1e-5);
  expect_error("invalid_token", "40", [&] { decoder.step(40); });
}

TEST(Decoder, DrawsTheSameTokensFromTheSameSeed) {
  const TempFolder folder;
  testing::write_small_model(folder.path());
  const auto draw = [&](std::uint64_t seed, double temperature) {
    Decoder decoder(folder.path());
    return generate(decoder, {1, 2, 3}, {.tokens = 12, .temperature = temperature, .seed = seed, .stop = {}},
                    [](i32) {});
  };
  EXPECT_EQ(draw(1, 1.0), draw(1, 1.0));
  EXPECT_NE(draw(1, 1.0), draw(2, 1.0));
  EXPECT_EQ(draw(1, 0), draw(2, 0));
}

TEST(Files, AFolderIsMadeOrThePathIsNamed) {
  const TempFolder folder;
  make_folder(folder.path() / "a" / "b");
  make_folder(folder.path() / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder.path() / "a" / "b"));
  write_file(folder.path() / "file", "");
  expect_error("io_error", "file", [&] { make_folder(folder.path() / "file"); });
  expect_error("io_error", "within", [&] { make_folder(folder.path() / "file" / "within"); });
}

}  // namespace
}  // namespace tessera
