#include "model/batch.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"
#include "model/boundaries.h"

namespace tessera {
namespace {

// Writable pointers into a blob; the order here is the order in memory, every array 64-byte aligned.
struct Arrays {
  i32 *tok, *label, *pos, *seq_end, *unique_id, *unique_ptr, *unique_pos, *loss_row, *loss_label, *cu;
  Chunk* chunk;
  ChunkRange* seq_chunk;
  size_t bytes;
};

Arrays arrays(const BatchLayout& l, void* blob) {
  size_t used = 0;
  const auto take = [&](i64 count, size_t size) {
    char* p = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(blob) + used);
    used += (static_cast<size_t>(count) * size + 63) / 64 * 64;
    return p;
  };
  const auto ints = [&](i64 count) { return reinterpret_cast<i32*>(take(count, sizeof(i32))); };
  Arrays a{};
  for (i32** p : {&a.tok, &a.label, &a.pos, &a.seq_end, &a.unique_id, &a.unique_ptr, &a.unique_pos,
                  &a.loss_row, &a.loss_label})
    *p = ints(std::max(l.tokens, kLossRowStep) + 1);
  a.cu = ints(l.sequences + 1);
  a.chunk = reinterpret_cast<Chunk*>(take(l.chunks(), sizeof(Chunk)));
  a.seq_chunk = reinterpret_cast<ChunkRange*>(take(l.sequences, sizeof(ChunkRange)));
  a.bytes = used;
  return a;
}

struct Cursor {
  i32 tokens = 0, sequences = 0, chunks = 0;
};

// Appends one sequence's positions, boundaries and chunks; ids beyond its own are padding.
void append(const Arrays& a, const Sequence& s, Cursor* at) {
  const i32 begin = at->tokens, length = static_cast<i32>(s.computed), known = static_cast<i32>(s.ids.size());
  for (i32 i = 0; i < length; ++i) {
    a.tok[begin + i] = i < known ? s.ids[static_cast<size_t>(i)] : 0;
    a.label[begin + i] = i < known ? s.labels[static_cast<size_t>(i)] : kIgnoreLabel;
    a.pos[begin + i] = i;
    a.seq_end[begin + i] = begin + length;
  }
  const i32 first_chunk = at->chunks;
  for (i32 c = 0; c < length; c += kChunk)
    a.chunk[at->chunks++] = {begin + c, std::min(kChunk, length - c), at->sequences,
                             (c == 0 ? 1 : 0) | (c + kChunk >= length ? 2 : 0)};
  a.seq_chunk[at->sequences] = {first_chunk, at->chunks};
  a.cu[at->sequences++] = begin;
  at->tokens += length;
}

// Work that is serial over a sequence starts with the longest, so that none begins when the others end.
void sort_longest_first(ChunkRange* ranges, i32 count) {
  std::stable_sort(ranges, ranges + count, [](const ChunkRange& x, const ChunkRange& y) {
    return x.end - x.begin > y.end - y.begin;
  });
}

// The distinct ids in ascending order with the ascending positions that hold each.
i32 group_by_id(const Arrays& a, i32 T) {
  std::iota(a.unique_pos, a.unique_pos + T, 0);
  std::stable_sort(a.unique_pos, a.unique_pos + T, [&](i32 x, i32 y) { return a.tok[x] < a.tok[y]; });
  i32 unique = 0;
  for (i32 i = 0; i < T; ++i) {
    const i32 id = a.tok[a.unique_pos[i]];
    if (unique > 0 && a.unique_id[unique - 1] == id) continue;
    a.unique_id[unique] = id;
    a.unique_ptr[unique++] = i;
  }
  a.unique_ptr[unique] = T;
  return unique;
}

i32 list_loss_rows(const Arrays& a, i32 T, i64 capacity, bool fixed) {
  i32 rows = 0;
  for (i32 t = 0; t < T; ++t)
    if (a.label[t] != kIgnoreLabel) {
      a.loss_row[rows] = t;
      a.loss_label[rows++] = a.label[t];
    }
  const auto padded = static_cast<i32>(loss_rows_of(rows, capacity, fixed));
  for (; rows < padded; ++rows) {
    a.loss_row[rows] = -1;
    a.loss_label[rows] = kIgnoreLabel;
  }
  return padded;
}

void check(const BatchLayout& layout, const BatchRules& rules, std::span<const Sequence> sequences) {
  i64 tokens = 0, count = 0;
  for (size_t n = 0; n < sequences.size(); ++n) {
    const Sequence& s = sequences[n];
    if (s.computed < static_cast<i64>(s.ids.size()) || s.labels.size() != s.ids.size())
      throw EngineError("invalid_batch",
                        "sequence " + std::to_string(n) + ": lengths of ids, labels and positions disagree");
    for (const auto values : {s.ids, s.labels})
      for (size_t i = 0; i < values.size(); ++i)
        if ((values[i] < 0 && !(values.data() == s.labels.data() && values[i] == kIgnoreLabel)) ||
            values[i] >= rules.vocab)
          throw EngineError("invalid_token",
                            "sequence " + std::to_string(n) + ", position " + std::to_string(i) + ": id " +
                                std::to_string(values[i]) + " is outside the vocabulary of " +
                                std::to_string(rules.vocab),
                            "The data were tokenised for another model.");
    tokens += s.computed;
    count += s.computed > 0;
  }
  if (tokens == 0) throw EngineError("invalid_batch", "a micro-batch without tokens");
  if (tokens > layout.tokens || count > layout.sequences)
    throw EngineError("batch_too_large", "a micro-batch of " + std::to_string(tokens) + " tokens in " +
                                             std::to_string(count) + " sequences exceeds the run's " +
                                             std::to_string(layout.tokens) + " and " +
                                             std::to_string(layout.sequences));
}

}  // namespace

size_t BatchLayout::bytes() const { return arrays(*this, nullptr).bytes; }

Batch BatchLayout::view(void* blob, const BatchShape& shape, bool compacted) const {
  const Arrays a = arrays(*this, blob);
  return {.T = shape.T,
          .num_seq = shape.num_seq,
          .num_chunk = shape.num_chunk,
          .num_loss = shape.num_loss,
          .tok = a.tok,
          .label = a.label,
          .pos = a.pos,
          .seq_end = a.seq_end,
          .cu = a.cu,
          .chunk = a.chunk,
          .seq_chunk = a.seq_chunk,
          .num_unique_cap = shape.num_unique,
          .unique_id = a.unique_id,
          .unique_ptr = a.unique_ptr,
          .unique_pos = a.unique_pos,
          .loss_row = compacted ? a.loss_row : nullptr,
          .loss_label = compacted ? a.loss_label : a.label,
          .longest = static_cast<i32>(longest)};
}

i64 loss_rows_of(i64 targets, i64 capacity, bool fixed_shapes) {
  const i64 step = fixed_shapes ? kLossRowStep : 1;
  return std::min(std::max<i64>(capacity, 1), (std::max<i64>(targets, 1) + step - 1) / step * step);
}

i64 sequences_with_tail(i64 count, i64 used, i64 capacity) {
  return count + (capacity - used + kTailSequence - 1) / kTailSequence;
}

BatchShape fill_batch(const BatchLayout& layout, const BatchRules& rules, std::span<const Sequence> sequences,
                      void* blob) {
  check(layout, rules, sequences);
  const Arrays a = arrays(layout, blob);
  Cursor at;
  for (const Sequence& s : sequences)
    if (s.computed > 0) append(a, s, &at);
  if (rules.fixed_shapes) {
    while (at.tokens < layout.tokens) {
      if (at.sequences == layout.sequences)
        throw EngineError("batch_too_large", "no room for the tail of a micro-batch of " +
                                                 std::to_string(at.sequences) + " sequences");
      append(a, {{}, {}, std::min<i64>(kTailSequence, layout.tokens - at.tokens)}, &at);
    }
    for (; at.sequences < layout.sequences; ++at.sequences) {
      a.cu[at.sequences] = at.tokens;
      a.seq_chunk[at.sequences] = {at.chunks, at.chunks};
    }
    sort_longest_first(a.seq_chunk, at.sequences);
    for (; at.chunks < layout.chunks(); ++at.chunks) a.chunk[at.chunks] = {0, 0, 0, 0};
  }
  a.cu[at.sequences] = at.tokens;
  check_boundaries({a.cu, static_cast<size_t>(at.sequences) + 1}, at.tokens);
  i32 unique = group_by_id(a, at.tokens);
  if (rules.fixed_shapes)
    for (; unique < at.tokens && unique < rules.vocab; ++unique) {
      a.unique_id[unique] = -1;
      a.unique_ptr[unique + 1] = at.tokens;
    }
  const i32 loss =
      rules.compaction ? list_loss_rows(a, at.tokens, layout.tokens, rules.fixed_shapes) : at.tokens;
  return {at.tokens, at.sequences, at.chunks, loss, unique};
}

}  // namespace tessera
