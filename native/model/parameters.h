// The model's weights, gradients and optimizer state in a backend's memory, reached by Hugging Face name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/arena.h"
#include "model/layout.h"
#include "ops/backend.h"
#include "ranks/collectives.h"

namespace tessera {

struct OptimizerOptions {
  OptimizerMode mode = OptimizerMode::master32;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  float weight_decay = 0.0f;
  bool decay_small = false;  // decay norms, conv taps, A_log and dt_bias too
};

// What a run keeps of each parameter.
enum class Field : u8 { weight, master, gradient, m, v };

// Which process of a run this is. Of each unit of the big bucket a rank owns one contiguous run, and updates
// it.
struct RankOf {
  int rank = 0, world = 1;
};

// What a rank keeps of its own run alone, each with all before it: masters and optimizer state (ZeRO-1), the
// sum of the gradients (ZeRO-2), the weights (ZeRO-3). The small bucket is everybody's.
enum class Sharding : u8 { optimizer, gradients, weights };
const char* sharding_name(Sharding sharding);
// "auto" (nothing) or a name; another has no value.
std::optional<std::optional<Sharding>> parse_sharding(const std::string& name);

class Parameters {
 public:
  // gradients: the type of the big bucket's gradients (fp32, or bf16 with bf16sr and a single micro-batch a
  // step).
  Parameters(Backend& backend, const Layout& layout, const OptimizerOptions& options, DType gradients,
             Arena* arena, RankOf rank = {}, Sharding sharding = Sharding::optimizer);
  void bind(const Arena& arena);  // takes the addresses; zeroes gradients and state

  const Layout& layout() const { return layout_; }
  bool has_master() const { return has_master_; }
  DType type(Field field, Bucket bucket) const;
  void* big(Field field, i64 offset) const;  // element offset into the big bucket
  float* small(Field field, i64 offset) const;

  // Copies one tensor, as fp32, to or from the backend. Writing weights also sets the master copy. Of what is
  // split among ranks, write() takes what is this rank's, and reading asks the others by `fetch`.
  void write(const TensorEntry& tensor, Field field, const float* values) const;
  std::vector<float> read(const TensorEntry& tensor, Field field) const;
  // The exact value of a weight: the master copy where there is one. Hands out pieces so that a large table
  // is never held twice.
  void read_exact(const TensorEntry& tensor, const std::function<void(const float*, i64)>& piece) const;

  // Values of a split field that another rank holds: elements begin … begin + count of the big bucket, in the
  // field's type, to `raw`.
  using Fetch = std::function<void(int rank, Field field, i64 begin, i64 count, void* raw)>;
  void set_fetch(Fetch fetch) { fetch_ = std::move(fetch); }
  // What a fetch of another rank asks this one for.
  void read_own(Field field, i64 begin, i64 count, void* raw) const;
  // What this rank has of a tensor, as fp32.
  std::vector<float> read_own(const TensorEntry& tensor, Field field) const;
  const std::vector<Shares>& shares() const { return shares_; }  // of the units, in their order
  void* own(Field field, size_t unit) const;                     // this rank's run of it
  // What this rank holds of the big bucket, in its order.
  struct Run {
    i64 begin, count;
    void* at;
  };
  std::vector<Run> runs(Field field) const;

  void zero_gradients() const;  // all of them
  void zero_small_gradients() const;
  // What this rank updates.
  std::vector<AdamSegment> segments(const OptimizerOptions& options) const;
  // What this rank's part of the gradient's norm is taken of: together, the ranks' parts hold each element
  // once.
  std::vector<AdamSegment> norm_segments(const OptimizerOptions& options) const;

 private:
  void* address(Field field, Bucket bucket) const;
  void read_piece(const TensorEntry& tensor, Field field, i64 begin, i64 count,
                  std::vector<float>* values) const;

  // Of a split field: calls back for each piece of begin … begin + count of the big bucket with who holds it.
  void each_piece(i64 begin, i64 count,
                  const std::function<void(int rank, i64 begin, i64 count)>& piece) const;
  bool is_split(Field field, Bucket bucket) const {
    if (rank_.world == 1 || bucket == Bucket::small) return false;
    if (field == Field::weight) return sharding_ == Sharding::weights;
    return field != Field::gradient || sharding_ != Sharding::optimizer;
  }
  i64 held(Field field, Bucket bucket) const {  // elements
    return is_split(field, bucket) ? own_count() : layout_.count(bucket);
  }
  i64 own_count() const {
    return own_.empty() ? layout_.big_count : own_.back() + shares_.back().count(rank_.rank);
  }
  char* own_address(Field field, i64 offset) const;

  Backend& backend_;
  const Layout& layout_;
  RankOf rank_;
  Sharding sharding_;
  std::vector<Shares> shares_;
  std::vector<i64> own_;  // where this rank's run of each unit begins in a split field
  Fetch fetch_;
  bool has_master_;
  DType weight_type_, gradient_type_, state_type_;
  int item_[5][2];  // arena items by field and bucket, -1 where there is none
  void* base_[5][2] = {};
};

// Every tensor of the layout from the files. check_tensors() has passed.
void load_weights(const Parameters& parameters, const SafetensorsFolder& files);

}  // namespace tessera
