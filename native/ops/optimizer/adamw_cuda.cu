#include <array>

#include "ops/optimizer/optimizer_cuda.h"
#include "ops/optimizer/stochastic_rounding.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr i64 kBlockElements = 32768;  // sixteen vectors of 8 a thread: its share of the set-up is small
constexpr int kSegmentsPerLaunch = 32;

struct Segments {
  AdamSegment at[kSegmentsPerLaunch];
  unsigned first_block[kSegmentsPerLaunch + 1];
  int count;
};

// AdamConfig in fp32, the complements taken in double first: 1 - beta2 in fp32 would be off by 1e-5.
struct Betas {
  float beta1, rest1, beta2, rest2, eps;
};

// What every element of a block needs, read once.
struct Factors {
  Betas betas;
  float grad_scale, decay, step_size, inv_sqrt_bias2;
  std::uint32_t key;
};

// p <- p (1 - lr wd) - lr (m / bias1) / (sqrt(v / bias2) + eps); 1 - lr wd itself would lose the digits of lr
// wd
__device__ __forceinline__ void update(float& p, float& m, float& v, float g, const Factors& f) {
  g *= f.grad_scale;
  m = f.betas.beta1 * m + f.betas.rest1 * g;
  v = f.betas.beta2 * v + f.betas.rest2 * g * g;
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(v));
  p -= p * f.decay + __fdividef(f.step_size * m, root * f.inv_sqrt_bias2 + f.betas.eps);
}

template <typename T>
__device__ __forceinline__ void load_vector(float (&out)[8], const T* p) {
  if constexpr (sizeof(T) == 4)
    load8f(out, p);
  else
    load8(out, p);
}

template <typename T, bool kStochastic>
__device__ __forceinline__ T narrowed(float value, std::uint32_t random) {
  if constexpr (sizeof(T) == 4)
    return value;
  else if constexpr (kStochastic)
    return __ushort_as_bfloat16(round_stochastic(value, random));
  else
    return __float2bfloat16(value);
}

template <typename T, bool kStochastic>
__device__ __forceinline__ void store_vector(T* p, const float (&v)[8], const std::uint32_t (&random)[8],
                                             int shift) {
  if constexpr (sizeof(T) == 4) {
    reinterpret_cast<float4*>(p)[0] = make_float4(v[0], v[1], v[2], v[3]);
    reinterpret_cast<float4*>(p)[1] = make_float4(v[4], v[5], v[6], v[7]);
  } else if constexpr (kStochastic) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const unsigned lo = round_stochastic_bits(__float_as_uint(v[2 * i]), random[2 * i] >> shift);
      const unsigned hi = round_stochastic_bits(__float_as_uint(v[2 * i + 1]), random[2 * i + 1] >> shift);
      words[i] = __byte_perm(lo, hi, 0x7632);  // the upper halves
    }
    *reinterpret_cast<uint4*>(p) = make_uint4(words[0], words[1], words[2], words[3]);
  } else {
    store8(p, v);
  }
}

template <typename Param, typename Grad, typename State, bool kMaster, bool kStochastic>
__device__ __forceinline__ void update_segment(const AdamSegment& s, i64 begin, i64 end, const Factors& f) {
  Param* param = static_cast<Param*>(s.param);
  const Grad* grad = static_cast<const Grad*>(s.grad);
  State *m = static_cast<State*>(s.m), *v = static_cast<State*>(s.v);
  const size_t address = reinterpret_cast<size_t>(param) | reinterpret_cast<size_t>(grad) |
                         reinterpret_cast<size_t>(m) | reinterpret_cast<size_t>(v) |
                         reinterpret_cast<size_t>(s.master);
  const i64 vectors_end = (address & 15) == 0 ? begin + (end - begin) / 8 * 8 : begin;
#pragma unroll 2
  for (i64 i = begin + threadIdx.x * 8; i < vectors_end; i += kThreads * 8) {
    float pv[8], gv[8], mv[8], vv[8];
    std::uint32_t random[8] = {};
    if constexpr (kMaster)
      load8f(pv, s.master + i);
    else
      load_vector(pv, param + i);
    load_vector(gv, grad + i);
    load_vector(mv, m + i);
    load_vector(vv, v + i);
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      update(pv[c], mv[c], vv[c], gv[c], f);
      if constexpr (kStochastic) random[c] = rounding_bits(f.key, s.rng_offset + i + c);
    }
    if constexpr (kMaster) store_vector<float, false>(s.master + i, pv, random, 0);
    store_vector<Param, kStochastic && !kMaster>(param + i, pv, random, 0);
    store_vector<State, kStochastic>(m + i, mv, random, 16);
    store_vector<State, kStochastic>(v + i, vv, random, 0);
  }
  for (i64 i = vectors_end + threadIdx.x; i < end; i += kThreads) {
    float pv = kMaster ? s.master[i] : static_cast<float>(param[i]);
    float mv = static_cast<float>(m[i]), vv = static_cast<float>(v[i]);
    update(pv, mv, vv, static_cast<float>(grad[i]), f);
    const std::uint32_t random = kStochastic ? rounding_bits(f.key, s.rng_offset + i) : 0;
    if constexpr (kMaster) s.master[i] = pv;
    param[i] = narrowed < Param, kStochastic && !kMaster > (pv, random);
    m[i] = narrowed<State, kStochastic>(mv, random >> 16);
    v[i] = narrowed<State, kStochastic>(vv, random);
  }
}

template <typename Param, typename Grad, typename State, bool kMaster, bool kStochastic>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(const __grid_constant__ Segments segments, Betas betas, const StepScalars* scalars,
                 const StepResult* result) {
  if (result->finite == 0) return;
  int s = 0;
  while (s + 1 < segments.count && blockIdx.x >= segments.first_block[s + 1]) ++s;
  const AdamSegment& segment = segments.at[s];
  const i64 begin = i64{blockIdx.x - segments.first_block[s]} * kBlockElements;
  Factors f;
  f.betas = betas;
  f.grad_scale = result->scale;
  f.decay = scalars->lr * segment.weight_decay;
  f.step_size = scalars->lr / scalars->bias1;
  f.inv_sqrt_bias2 = 1.0f / sqrtf(scalars->bias2);
  f.key = rounding_key(scalars->seed, scalars->step);
  update_segment<Param, Grad, State, kMaster, kStochastic>(segment, begin,
                                                           min(segment.count, begin + kBlockElements), f);
}

using Kernel = void (*)(Segments, Betas, const StepScalars*, const StepResult*);

struct Variant {
  DType param, grad, state;
  bool master, stochastic;
  Kernel kernel;
};

constexpr DType kF = DType::f32, kB = DType::bf16;
const std::array<Variant, 8> kVariants = {{
    {kB, kF, kF, true, false, adamw_kernel<bf16, float, float, true, false>},
    {kB, kB, kF, true, false, adamw_kernel<bf16, bf16, float, true, false>},
    {kF, kF, kF, false, false, adamw_kernel<float, float, float, false, false>},
    {kB, kB, kB, false, true, adamw_kernel<bf16, bf16, bf16, false, true>},
    {kB, kF, kB, false, true, adamw_kernel<bf16, float, bf16, false, true>},
    {kF, kF, kB, false, true, adamw_kernel<float, float, bf16, false, true>},
    {kF, kF, kF, false, true, adamw_kernel<float, float, float, false, false>},
    {kB, kB, kF, false, true, adamw_kernel<bf16, bf16, float, false, true>},
}};

bool matches(const Variant& v, const AdamSegment& s, bool stochastic) {
  return v.param == s.param_dtype && v.grad == s.grad_dtype && v.state == s.state_dtype &&
         v.master == (s.master != nullptr) && v.stochastic == stochastic;
}

}  // namespace

void launch_adamw(const std::vector<AdamSegment>& segments, const AdamConfig& config,
                  const StepScalars* scalars, const StepResult* result, cudaStream_t stream) {
  const bool stochastic = config.mode == OptimizerMode::bf16sr;
  const Betas betas{static_cast<float>(config.beta1), static_cast<float>(1.0 - config.beta1),
                    static_cast<float>(config.beta2), static_cast<float>(1.0 - config.beta2),
                    static_cast<float>(config.eps)};
  size_t served = 0;
  for (const Variant& variant : kVariants) {
    Segments batch{};
    const auto flush = [&] {
      if (batch.count == 0) return;
      variant.kernel<<<batch.first_block[batch.count], kThreads, 0, stream>>>(batch, betas, scalars, result);
      check_launch("adamw");
      batch = Segments{};
    };
    for (const AdamSegment& segment : segments) {
      if (!matches(variant, segment, stochastic)) continue;
      ++served;
      if (segment.count == 0) continue;
      batch.at[batch.count] = segment;
      batch.first_block[batch.count + 1] =
          batch.first_block[batch.count] + ceil_div(segment.count, kBlockElements);
      if (++batch.count == kSegmentsPerLaunch) flush();
    }
    flush();
  }
  if (served != segments.size()) {
    throw EngineError("unsupported_optimizer",
                      "adamw: a segment's parameter, gradient and state types go together in no kernel",
                      "Use optimizer.mode master32 or bf16sr.");
  }
}

}  // namespace tessera
