#include "model/parameters.h"

#include <algorithm>

#include "core/dtype.h"

namespace tessera {
namespace {

constexpr i64 kPiece = i64{1} << 24;  // elements converted at a time

size_t index(Field f) { return static_cast<size_t>(f); }
size_t index(Bucket b) { return static_cast<size_t>(b); }

}  // namespace

Parameters::Parameters(Backend& backend, const Layout& layout, const OptimizerOptions& options,
                       DType gradients, Arena* arena)
    : backend_(backend), layout_(layout), weight_type_(backend.weight_dtype()), gradient_type_(gradients) {
  has_master_ = options.mode == OptimizerMode::master32 && weight_type_ != DType::f32;
  state_type_ = options.mode == OptimizerMode::master32 ? DType::f32 : DType::bf16;
  for (const Bucket b : {Bucket::big, Bucket::small})
    for (const Field f : {Field::weight, Field::master, Field::gradient, Field::m, Field::v}) {
      const MemoryPart part = f == Field::weight     ? MemoryPart::weights
                              : f == Field::gradient ? MemoryPart::gradients
                                                     : MemoryPart::optimizer;
      const bool absent = f == Field::master && (b == Bucket::small || !has_master_);
      const auto bytes = static_cast<size_t>(layout.count(b)) * dtype_bytes(type(f, b));
      item_[index(f)][index(b)] = absent ? -1 : arena->add(part, bytes);
    }
}

void Parameters::bind(const Arena& arena) {
  for (const Bucket b : {Bucket::big, Bucket::small})
    for (const Field f : {Field::weight, Field::master, Field::gradient, Field::m, Field::v}) {
      const int item = item_[index(f)][index(b)];
      if (item < 0) continue;
      base_[index(f)][index(b)] = arena.at(item);
      backend_.zero(arena.at(item), static_cast<size_t>(layout_.count(b)) * dtype_bytes(type(f, b)));
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

void Parameters::write(const TensorEntry& t, Field field, const float* values) const {
  const DType to = type(field, t.bucket);
  char* base = static_cast<char*>(address(field, t.bucket));
  std::vector<char> converted;
  for (i64 i = 0; i < t.count; i += kPiece) {
    const i64 n = std::min(kPiece, t.count - i);
    const size_t at = static_cast<size_t>(t.offset + i);
    converted.resize(static_cast<size_t>(n) * dtype_bytes(to));
    from_f32(converted.data(), to, values + i, n);
    backend_.copy_in(base + at * dtype_bytes(to), converted.data(), converted.size());
  }
  if (field == Field::weight && t.bucket == Bucket::big && has_master_) write(t, Field::master, values);
}

void Parameters::read_piece(const TensorEntry& t, Field field, i64 begin, i64 count,
                            std::vector<float>* values) const {
  const DType from = type(field, t.bucket);
  const char* base = static_cast<const char*>(address(field, t.bucket));
  std::vector<char> raw(static_cast<size_t>(count) * dtype_bytes(from));
  backend_.copy_out(raw.data(), base + static_cast<size_t>(t.offset + begin) * dtype_bytes(from), raw.size());
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

void Parameters::zero_small_gradients() const {
  backend_.zero(address(Field::gradient, Bucket::small),
                static_cast<size_t>(layout_.small_count) * sizeof(float));
}

std::vector<AdamSegment> Parameters::segments(const OptimizerOptions& options) const {
  std::vector<AdamSegment> list;
  for (const Bucket b : {Bucket::big, Bucket::small})
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
  return list;
}

void load_weights(const Parameters& parameters, const SafetensorsFolder& files) {
  for (const TensorEntry& t : parameters.layout().tensors)
    parameters.write(t, Field::weight, files.file_of(t.name).floats(t.name).data());
}

}  // namespace tessera
