#include "model/parameters.h"

#include <algorithm>

#include "core/dtype.h"

namespace tessera {
namespace {

constexpr i64 kPiece = i64{1} << 24;  // elements converted at a time

size_t index(Field f) { return static_cast<size_t>(f); }
size_t index(Bucket b) { return static_cast<size_t>(b); }

constexpr const char* kShardings[] = {"optimizer", "gradients", "weights"};

}  // namespace

const char* sharding_name(Sharding sharding) { return kShardings[static_cast<size_t>(sharding)]; }

std::optional<std::optional<Sharding>> parse_sharding(const std::string& name) {
  if (name == "auto") return std::optional<Sharding>();
  for (const Sharding s : {Sharding::optimizer, Sharding::gradients, Sharding::weights})
    if (name == sharding_name(s)) return s;
  return std::nullopt;
}

Parameters::Parameters(Backend& backend, const Layout& layout, const OptimizerOptions& options,
                       DType gradients, Arena* arena, RankOf rank, Sharding sharding)
    : backend_(backend),
      layout_(layout),
      rank_(rank),
      sharding_(sharding),
      weight_type_(backend.weight_dtype()),
      gradient_type_(gradients) {
  i64 own = 0;
  for (const Unit& unit : layout.units) {
    if (rank_.world == 1) break;
    shares_.push_back(deal(unit.begin, unit.count, rank_.world));
    own_.push_back(own);
    own += shares_.back().count(rank_.rank);
  }
  has_master_ = options.mode == OptimizerMode::master32 && weight_type_ != DType::f32;
  state_type_ = options.mode == OptimizerMode::master32 ? DType::f32 : DType::bf16;
  for (const Bucket b : {Bucket::big, Bucket::small})
    for (const Field f : {Field::weight, Field::master, Field::gradient, Field::m, Field::v}) {
      const MemoryPart part = f == Field::weight     ? MemoryPart::weights
                              : f == Field::gradient ? MemoryPart::gradients
                                                     : MemoryPart::optimizer;
      const bool absent = f == Field::master && (b == Bucket::small || !has_master_);
      const auto bytes = static_cast<size_t>(held(f, b)) * dtype_bytes(type(f, b));
      item_[index(f)][index(b)] = absent ? -1 : arena->add(part, bytes);
    }
}

void Parameters::bind(const Arena& arena) {
  for (const Bucket b : {Bucket::big, Bucket::small})
    for (const Field f : {Field::weight, Field::master, Field::gradient, Field::m, Field::v}) {
      const int item = item_[index(f)][index(b)];
      if (item < 0) continue;
      base_[index(f)][index(b)] = arena.at(item);
      backend_.zero(arena.at(item), static_cast<size_t>(held(f, b)) * dtype_bytes(type(f, b)));
    }
}

DType Parameters::type(Field field, Bucket bucket) const {
  // The small bucket is trained in fp32 throughout: decay parameters drift in bf16.
  if (bucket == Bucket::small || field == Field::master) return DType::f32;
  if (field == Field::weight) return weight_type_;
  return field == Field::gradient ? gradient_type_ : state_type_;
}

void* Parameters::address(Field field, Bucket bucket) const { return base_[index(field)][index(bucket)]; }

void* Parameters::big(Field field, i64 offset) const {
  return static_cast<char*>(address(field, Bucket::big)) +
         static_cast<size_t>(offset) * dtype_bytes(type(field, Bucket::big));
}

float* Parameters::small(Field field, i64 offset) const {
  return static_cast<float*>(address(field, Bucket::small)) + offset;
}

void Parameters::each_piece(i64 begin, i64 count,
                            const std::function<void(int rank, i64 begin, i64 count)>& piece) const {
  for (const Shares& unit : shares_)
    for (int r = 0; r < rank_.world; ++r) {
      const i64 from = std::max(begin, unit.begin[static_cast<size_t>(r)]);
      const i64 to = std::min(begin + count, unit.begin[static_cast<size_t>(r) + 1]);
      if (from < to) piece(r, from, to - from);
    }
}

// offset: into the big bucket, of an element that is this rank's.
char* Parameters::own_address(Field field, i64 offset) const {
  size_t unit = 0;
  while (unit + 1 < shares_.size() && shares_[unit].begin.back() <= offset) ++unit;
  const i64 at = own_[unit] + offset - shares_[unit].begin[static_cast<size_t>(rank_.rank)];
  return static_cast<char*>(address(field, Bucket::big)) +
         static_cast<size_t>(at) * dtype_bytes(type(field, Bucket::big));
}

void* Parameters::own(Field field, size_t unit) const {
  const i64 begin = shares_[unit].begin[static_cast<size_t>(rank_.rank)];
  return is_split(field, Bucket::big) ? own_address(field, begin) : big(field, begin);
}

std::vector<Parameters::Run> Parameters::runs(Field field) const {
  if (!is_split(field, Bucket::big)) return {{0, layout_.big_count, big(field, 0)}};
  std::vector<Run> list;
  for (size_t u = 0; u < shares_.size(); ++u)
    list.push_back(
        {shares_[u].begin[static_cast<size_t>(rank_.rank)], shares_[u].count(rank_.rank), own(field, u)});
  return list;
}

std::vector<float> Parameters::read_own(const TensorEntry& t, Field field) const {
  if (!is_split(field, t.bucket)) return read(t, field);
  std::vector<float> values;
  each_piece(t.offset, t.count, [&](int r, i64 begin, i64 count) {
    if (r != rank_.rank) return;
    const DType from = type(field, t.bucket);
    std::vector<char> raw(static_cast<size_t>(count) * dtype_bytes(from));
    read_own(field, begin, count, raw.data());
    values.resize(static_cast<size_t>(count));
    to_f32(values.data(), raw.data(), from, count);
  });
  return values;
}

void Parameters::read_own(Field field, i64 begin, i64 count, void* raw) const {
  backend_.copy_out(raw, own_address(field, begin),
                    static_cast<size_t>(count) * dtype_bytes(type(field, Bucket::big)));
}

void Parameters::write(const TensorEntry& t, Field field, const float* values) const {
  const DType to = type(field, t.bucket);
  if (field == Field::weight && t.bucket == Bucket::big && has_master_) write(t, Field::master, values);
  if (is_split(field, t.bucket)) {
    each_piece(t.offset, t.count, [&](int r, i64 begin, i64 count) {
      if (r != rank_.rank) return;
      std::vector<char> raw(static_cast<size_t>(count) * dtype_bytes(to));
      from_f32(raw.data(), to, values + (begin - t.offset), count);
      backend_.copy_in(own_address(field, begin), raw.data(), raw.size());
    });
    return;
  }
  char* base = static_cast<char*>(address(field, t.bucket));
  std::vector<char> converted;
  for (i64 i = 0; i < t.count; i += kPiece) {
    const i64 n = std::min(kPiece, t.count - i);
    const size_t at = static_cast<size_t>(t.offset + i);
    converted.resize(static_cast<size_t>(n) * dtype_bytes(to));
    from_f32(converted.data(), to, values + i, n);
    backend_.copy_in(base + at * dtype_bytes(to), converted.data(), converted.size());
  }
}

void Parameters::read_piece(const TensorEntry& t, Field field, i64 begin, i64 count,
                            std::vector<float>* values) const {
  const DType from = type(field, t.bucket);
  const char* base = static_cast<const char*>(address(field, t.bucket));
  std::vector<char> raw(static_cast<size_t>(count) * dtype_bytes(from));
  if (is_split(field, t.bucket))
    each_piece(t.offset + begin, count, [&](int r, i64 at, i64 n) {
      char* to = raw.data() + static_cast<size_t>(at - t.offset - begin) * dtype_bytes(from);
      if (r == rank_.rank)
        read_own(field, at, n, to);
      else
        fetch_(r, field, at, n, to);
    });
  else
    backend_.copy_out(raw.data(), base + static_cast<size_t>(t.offset + begin) * dtype_bytes(from),
                      raw.size());
  values->resize(static_cast<size_t>(count));
  to_f32(values->data(), raw.data(), from, count);
}

std::vector<float> Parameters::read(const TensorEntry& t, Field field) const {
  std::vector<float> values;
  read_piece(t, field, 0, t.count, &values);
  return values;
}

void Parameters::read_exact(const TensorEntry& t, const std::function<void(const float*, i64)>& piece) const {
  const Field field = t.bucket == Bucket::big && has_master_ ? Field::master : Field::weight;
  std::vector<float> values;
  for (i64 i = 0; i < t.count; i += kPiece) {
    const i64 n = std::min(kPiece, t.count - i);
    read_piece(t, field, i, n, &values);
    piece(values.data(), n);
  }
}

void Parameters::zero_gradients() const {
  backend_.zero(address(Field::gradient, Bucket::big),
                static_cast<size_t>(held(Field::gradient, Bucket::big)) * dtype_bytes(gradient_type_));
  zero_small_gradients();
}

void Parameters::zero_small_gradients() const {
  backend_.zero(address(Field::gradient, Bucket::small),
                static_cast<size_t>(layout_.small_count) * sizeof(float));
}

std::vector<AdamSegment> Parameters::segments(const OptimizerOptions& options) const {
  std::vector<AdamSegment> list;
  for (size_t u = 0; u < shares_.size(); ++u)
    list.push_back({.param = own(Field::weight, u),
                    .master = has_master_ ? static_cast<float*>(own(Field::master, u)) : nullptr,
                    .grad = own(Field::gradient, u),
                    .m = own(Field::m, u),
                    .v = own(Field::v, u),
                    .count = shares_[u].count(rank_.rank),
                    .param_dtype = weight_type_,
                    .grad_dtype = gradient_type_,
                    .state_dtype = state_type_,
                    .weight_decay = options.weight_decay,
                    .rng_offset = shares_[u].begin[static_cast<size_t>(rank_.rank)]});
  for (const Bucket b : {Bucket::big, Bucket::small}) {
    if (b == Bucket::big && rank_.world > 1) continue;
    list.push_back({.param = address(Field::weight, b),
                    .master = static_cast<float*>(address(Field::master, b)),
                    .grad = address(Field::gradient, b),
                    .m = address(Field::m, b),
                    .v = address(Field::v, b),
                    .count = layout_.count(b),
                    .param_dtype = type(Field::weight, b),
                    .grad_dtype = type(Field::gradient, b),
                    .state_dtype = type(Field::m, b),
                    .weight_decay = b == Bucket::big || options.decay_small ? options.weight_decay : 0.0f,
                    .rng_offset = b == Bucket::big ? 0 : layout_.big_count});
  }
  return list;
}

// The small bucket is the same on all ranks once it is summed: rank 0 counts it.
std::vector<AdamSegment> Parameters::norm_segments(const OptimizerOptions& options) const {
  std::vector<AdamSegment> list = segments(options);
  if (rank_.rank > 0) list.pop_back();
  return list;
}

void load_weights(const Parameters& parameters, const SafetensorsFolder& files) {
  for (const TensorEntry& t : parameters.layout().tensors)
    parameters.write(t, Field::weight, files.file_of(t.name).floats(t.name).data());
}

}  // namespace tessera
