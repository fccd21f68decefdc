// What the ranks of a run exchange in a step. Every rank submits the same in the same order.
#include <cstddef>

#include "model/executor.h"

namespace tessera {

void Executor::walk_forward(const std::function<void()>& embed, const std::function<void(i64 l)>& layer) {
  fetch_unit(0);
  fetch_unit(1);
  need_unit(0);
  embed();
  const i64 layers = config_.num_layers();
  for (i64 l = 0; l < layers; ++l) {
    fetch_unit(l + 1 < layers ? static_cast<size_t>(l) + 2 : head_unit());
    need_unit(static_cast<size_t>(l) + 1);
    layer(l);
  }
}

// The last two layers still stand in their slots.
void Executor::walk_backward(bool sums, const std::function<void(i64 l)>& layer,
                             const std::function<void()>& embed) {
  for (i64 l = config_.num_layers() - 1; l >= 0; --l) {
    const auto unit = static_cast<size_t>(l) + 1;
    if (l > 0) fetch_unit(unit - 1);
    need_unit(unit);
    claim_gradients(unit);
    layer(l);
    if (sums) sum_unit(unit);
  }
  if (!config_.tied) claim_gradients(0);
  embed();
  if (sums) sum_unit(0);
}

// Weights of a unit to its slot, beside what is computed from now on. What stood there has been used by what
// was enqueued before.
void Executor::fetch_unit(size_t unit) {
  if (!weight_slots_) return;
  UnitSlots::Slot& slot = weight_slots_->of(unit);
  if (slot.unit == static_cast<i64>(unit)) return;
  slot.unit = static_cast<i64>(unit);
  const Shares shares = deal(0, layout_.units[unit].count, options_.rank.world);
  slot.ticket =
      backend_.beside("all_gather", static_cast<double>(weight_slots_->bytes(unit)), [&](void* stream) {
        options_.collectives->all_gather(parameters_.own(Field::weight, unit), slot.data,
                                         weight_slots_->type(), shares, stream);
      });
}

void Executor::need_unit(size_t unit) {
  if (!weight_slots_) return;
  fetch_unit(unit);
  backend_.meet(weight_slots_->of(unit).ticket);
}

// The slot's last sum has been taken. What no product overwrites is summed as well, and counts in the norm.
void Executor::claim_gradients(size_t unit) {
  if (!gradient_slots_) return;
  backend_.meet(gradient_slots_->of(unit).ticket);
  for (const UnitSlots::Gap& gap : gradient_slots_->gaps(unit)) backend_.zero(gap.at, gap.bytes);
}

void Executor::zero_gradients_of(size_t unit) {
  if (!gradient_slots_) return;
  claim_gradients(unit);
  backend_.zero(gradient_slots_->of(unit).data, gradient_slots_->bytes(unit));
}

void Executor::sum_unit(size_t unit) {
  const double bytes = 4.0 * static_cast<double>(layout_.units[unit].count);
  if (!gradient_slots_) {
    auto* gradients = static_cast<float*>(parameters_.big(Field::gradient, 0));
    backend_.beside("reduce_scatter", bytes, [&](void* stream) {
      options_.collectives->reduce_scatter(gradients, parameters_.shares()[unit], stream);
    });
    return;
  }
  UnitSlots::Slot& slot = gradient_slots_->of(unit);
  const Shares shares = deal(0, layout_.units[unit].count, options_.rank.world);
  const int rank = options_.rank.rank;
  slot.ticket = backend_.beside("reduce_scatter", bytes, [&](void* stream) {
    auto* whole = static_cast<float*>(slot.data);
    options_.collectives->reduce_scatter(whole, shares, stream);
    backend_.keep_sum(parameters_.own(Field::gradient, unit), gradient_type_,
                      whole + shares.begin[static_cast<size_t>(rank)], shares.count(rank), !first_round_,
                      stream);
  });
}

void Executor::sum_small_gradients() {
  backend_.beside("all_reduce", 4.0 * static_cast<double>(layout_.small_count), [&](void* stream) {
    options_.collectives->all_reduce(dp(0), layout_.small_count, stream);
  });
  backend_.meet();
}

// A NaN anywhere is one in everybody's sum: all of them refuse the step, before anything has changed.
void Executor::share_norm() {
  backend_.grad_squares(result_, norm_segments_);
  backend_.beside("all_reduce", 2 * sizeof(double), [&](void* stream) {
    static_assert(offsetof(StepResult, squares) == offsetof(StepResult, loss_sum) + sizeof(double));
    options_.collectives->all_reduce(&result_->loss_sum, 2, stream);
  });
  backend_.meet();
  backend_.finish_norm(result_, scalars_);
}

// Where weights are split, the next pass fetches them.
void Executor::gather_weights() {
  if (weight_slots_) return weight_slots_->forget();
  const DType type = backend_.weight_dtype();
  for (size_t u = 0; u < layout_.units.size(); ++u)
    backend_.beside("all_gather",
                    static_cast<double>(dtype_bytes(type)) * static_cast<double>(layout_.units[u].count),
                    [&](void* stream) {
                      options_.collectives->all_gather(parameters_.own(Field::weight, u), w(0), type,
                                                       parameters_.shares()[u], stream);
                    });
  backend_.meet();
}

}  // namespace tessera
