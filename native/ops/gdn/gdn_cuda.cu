// Entry points of the gated delta rule on CUDA: what is supported, and which kernels run.
#include <string>

#include "ops/gdn/gdn_cuda.h"
#include "ops/gdn/gdn_kernels.h"

namespace tessera {
namespace {

using gdn::Args;

void require_supported(const GdnShape& shape, KernelTier tier) {
  if (gdn_cuda_supports(shape, tier)) return;
  const bool fast = tier != KernelTier::reference;
  throw EngineError("unsupported_head_size",
                    "linear attention has key heads of " + std::to_string(shape.key_dim) + " (" +
                        std::to_string(shape.key_heads) + ") and value heads of " +
                        std::to_string(shape.value_dim) + " (" + std::to_string(shape.value_heads) +
                        "); the CUDA kernels serve " +
                        (fast ? "heads of 128" : "heads of 1 to 128 (slow reference kernels)") +
                        " and value heads divisible by key heads",
                    fast ? "Accept the slow reference kernels, or use the cpu device for this model."
                         : "Use the cpu device for this model.");
}

}  // namespace

bool gdn_cuda_supports(const GdnShape& shape, KernelTier tier) {
  if (shape.key_heads < 1 || shape.value_heads < 1 || shape.value_heads % shape.key_heads != 0) return false;
  if (tier != KernelTier::reference) return shape.key_dim == gdn::kHead && shape.value_dim == gdn::kHead;
  return shape.key_dim >= 1 && shape.key_dim <= 128 && shape.value_dim >= 1 && shape.value_dim <= 128;
}

KernelTier gdn_cuda_tier(const GdnShape& shape, int compute_capability) {
  const bool hopper = compute_capability == 90 && gdn_cuda_supports(shape, KernelTier::hopper);
  return hopper ? KernelTier::hopper : KernelTier::portable;
}

void launch_gdn_kkt_fwd(float* g, float* beta, Act* ar, const Act* qkv, const Act* proj, const float* a_log,
                        const float* dt_bias, const Batch& batch, const GdnShape& shape, KernelTier tier,
                        cudaStream_t stream) {
  require_supported(shape, tier);
  const Args args = gdn::make_args<bf16>(qkv, nullptr, nullptr, nullptr, batch, shape);
  const auto run = tier == KernelTier::reference ? gdn::run_kkt_fwd_ref<bf16> : gdn::run_kkt_fwd;
  run(args, g, beta, static_cast<bf16*>(ar), static_cast<const bf16*>(proj), a_log, dt_bias, shape,
      batch.num_chunk, stream);
}

void launch_gdn_fwd(Act* o, Act* state, const Act* qkv, const float* g, const float* beta, const Act* ar,
                    const Batch& batch, const GdnShape& shape, KernelTier tier, cudaStream_t stream) {
  require_supported(shape, tier);
  const Args args = gdn::make_args<bf16>(qkv, g, beta, ar, batch, shape);
  const auto run = tier == KernelTier::hopper     ? gdn::run_fwd_wgmma
                   : tier == KernelTier::portable ? gdn::run_fwd
                                                  : gdn::run_fwd_ref<bf16>;
  run(args, static_cast<bf16*>(o), static_cast<bf16*>(state), batch.num_seq, stream);
}

void launch_gdn_bwd(Act* dq, Act* dk, Act* dv, float* d_gamma, float* d_beta, Act* scratch_du,
                    Act* scratch_ds, const Act* d_o, const Act* qkv, const float* g, const float* beta,
                    const Act* ar, const Act* state, const Batch& batch, const GdnShape& shape,
                    KernelTier tier, cudaStream_t stream) {
  require_supported(shape, tier);
  const Args args = gdn::make_args<bf16>(qkv, g, beta, ar, batch, shape);
  const gdn::Gradients out{
      static_cast<bf16*>(dq),         static_cast<bf16*>(dk),        static_cast<bf16*>(dv), d_gamma, d_beta,
      static_cast<bf16*>(scratch_du), static_cast<bf16*>(scratch_ds)};
  const bf16* grad = static_cast<const bf16*>(d_o);
  const bf16* states = static_cast<const bf16*>(state);
  if (tier == KernelTier::hopper) {
    gdn::run_bwd_state_wgmma(args, out, grad, batch.num_seq, stream);
    gdn::run_bwd_chunk_wgmma(args, out, grad, states, batch.num_chunk, stream);
  } else if (tier == KernelTier::portable) {
    gdn::run_bwd_state(args, out, grad, batch.num_seq, stream);
    gdn::run_bwd_chunk(args, out, grad, states, batch.num_chunk, stream);
  } else {
    gdn::run_bwd_ref(args, out, grad, states, batch.num_seq, stream);
  }
}

}  // namespace tessera
