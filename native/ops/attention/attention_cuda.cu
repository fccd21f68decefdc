// Entry points of attention on CUDA: what is supported, and which kernels run.
#include <string>

#include "ops/attention/attention_cuda.h"
#include "ops/attention/attention_kernels.h"

namespace tessera {
namespace {

using attention::Args;

void require_supported(const AttnShape& shape, KernelTier tier) {
  if (attention_cuda_supports(shape, tier)) return;
  const bool portable = tier != KernelTier::reference;
  throw EngineError(
      "unsupported_head_size",
      "full attention has head_dim " + std::to_string(shape.head_dim) + ", " + std::to_string(shape.heads) +
          " heads and " + std::to_string(shape.kv_heads) + " kv heads; the CUDA kernels serve head_dim " +
          (portable ? "256" : "8, 16, .. 256 (slow reference kernels)") + " and heads divisible by kv heads",
      portable ? "Accept the slow reference kernels, or use the cpu device for this model."
               : "Use the cpu device for this model.");
}

}  // namespace

bool attention_cuda_supports(const AttnShape& shape, KernelTier tier) {
  if (shape.kv_heads < 1 || shape.heads < 1 || shape.heads % shape.kv_heads != 0) return false;
  if (tier != KernelTier::reference) return shape.head_dim == attention::kHead;
  return shape.head_dim >= 8 && shape.head_dim <= 256 && shape.head_dim % 8 == 0;
}

KernelTier attention_cuda_tier(const AttnShape& shape, int compute_capability) {
  const bool hopper = compute_capability == 90 && attention_cuda_supports(shape, KernelTier::hopper);
  return hopper ? KernelTier::hopper : KernelTier::portable;
}

void launch_attention_fwd(Act* y, Act* o, float* lse, const Act* q, const Act* k, const Act* proj,
                          const Batch& batch, const AttnShape& shape, KernelTier tier, cudaStream_t stream) {
  require_supported(shape, tier);
  const Args args = attention::make_args<bf16>(q, k, proj, batch, shape);
  const attention::Outputs out{static_cast<bf16*>(y), static_cast<bf16*>(o), lse};
  if (tier == KernelTier::hopper) {
    attention::run_fwd_wgmma(args, out, stream);
  } else if (tier == KernelTier::portable) {
    attention::run_fwd(args, out, stream);
  } else {
    attention::run_fwd_ref(args, out, stream);
  }
}

void launch_attention_bwd(Act* dq, Act* dk, Act* dproj, Act* scratch_do, float* scratch_delta, const Act* dy,
                          const Act* o, const float* lse, const Act* q, const Act* k, const Act* proj,
                          const Batch& batch, const AttnShape& shape, KernelTier tier, cudaStream_t stream) {
  require_supported(shape, tier);
  const Args args = attention::make_args<bf16>(q, k, proj, batch, shape);
  const attention::Gradients out{static_cast<bf16*>(dq), static_cast<bf16*>(dk), static_cast<bf16*>(dproj),
                                 static_cast<bf16*>(scratch_do), scratch_delta};
  const bf16 *grad = static_cast<const bf16*>(dy), *output = static_cast<const bf16*>(o);
  if (tier == KernelTier::reference) return attention::run_bwd_ref(args, out, lse, grad, output, stream);
  attention::run_bwd_gate(args, out, grad, output, stream);
  if (tier == KernelTier::hopper) {
    attention::run_bwd_dkv_wgmma(args, out, lse, stream);
    attention::run_bwd_dq_wgmma(args, out, lse, stream);
  } else {
    attention::run_bwd_dkv(args, out, lse, stream);
    attention::run_bwd_dq(args, out, lse, stream);
  }
}

}  // namespace tessera
