#include "ops/reference/reference_device.cuh"

namespace tessera::reference {
namespace {

template <typename Real>
__global__ void embedding_fwd_kernel(Real* x, const Real* table, const i32* tok, i64 H) {
  for (i64 i = threadIdx.x; i < H; i += kThreads) x[blockIdx.x * H + i] = table[tok[blockIdx.x] * H + i];
}

template <typename Real, typename Grad>
__global__ void embedding_bwd_kernel(Grad* d_table, const Real* dx, const i32* id, const i32* ptr,
                                     const i32* pos, i64 H) {
  if (id[blockIdx.x] < 0) return;
  for (i64 i = threadIdx.x; i < H; i += kThreads) {
    Grad& out = d_table[id[blockIdx.x] * H + i];
    float sum = 0.0f;
    for (i32 n = ptr[blockIdx.x]; n < ptr[blockIdx.x + 1]; ++n) sum += static_cast<float>(dx[pos[n] * H + i]);
    out = static_cast<Grad>(static_cast<float>(out) + sum);
  }
}

template <typename Real>
__global__ void rmsnorm_fwd_kernel(Real* y, const Real* x, const float* w, i64 H, float eps) {
  __shared__ float scratch[33];
  const i64 at = blockIdx.x * H;
  const float r = inverse_rms(x + at, H, eps, scratch);
  for (i64 i = threadIdx.x; i < H; i += kThreads)
    y[at + i] = static_cast<Real>(static_cast<float>(x[at + i]) * r * (1.0f + w[i]));
}

template <typename Real>
__global__ void rmsnorm_bwd_kernel(Real* dx, float* inverse, const Real* dy, const Real* x, const float* w,
                                   const Real* dres, i64 H, float eps) {
  __shared__ float scratch[33];
  const i64 at = blockIdx.x * H;
  const float r = inverse_rms(x + at, H, eps, scratch);
  float dot = 0.0f;
  for (i64 i = threadIdx.x; i < H; i += kThreads)
    dot += static_cast<float>(dy[at + i]) * (1.0f + w[i]) * static_cast<float>(x[at + i]) * r;
  __syncthreads();
  const float mean = block_sum(dot, scratch) / static_cast<float>(H);
  for (i64 i = threadIdx.x; i < H; i += kThreads) {
    const float g = static_cast<float>(dy[at + i]) * (1.0f + w[i]);
    const float d = r * (g - static_cast<float>(x[at + i]) * r * mean);
    dx[at + i] = static_cast<Real>(d + (dres ? static_cast<float>(dres[at + i]) : 0.0f));
  }
  if (threadIdx.x == 0) inverse[blockIdx.x] = r;
}

template <typename Real>
__global__ void gated_norm_fwd_kernel(Real* y, const Real* o, const Real* proj, const float* w, Gdn s,
                                      float eps) {
  __shared__ float scratch[33];
  const i64 t = blockIdx.x, dim = s.value_dim, at = t * s.values() + blockIdx.y * dim;
  const i64 z_at = t * s.proj_dim() + s.z_offset() + blockIdx.y * dim;
  const float r = inverse_rms(o + at, dim, eps, scratch);
  for (i64 i = threadIdx.x; i < dim; i += kThreads)
    y[at + i] = static_cast<Real>(w[i] * static_cast<float>(o[at + i]) * r *
                                  exact_silu(static_cast<float>(proj[z_at + i])));
}

template <typename Real>
__global__ void gated_norm_bwd_kernel(Real* d_o, Real* dproj, float* inverse, const Real* dy, const Real* o,
                                      const Real* proj, const float* w, Gdn s, float eps) {
  __shared__ float scratch[33];
  const i64 t = blockIdx.x, dim = s.value_dim, at = t * s.values() + blockIdx.y * dim;
  const i64 z_at = t * s.proj_dim() + s.z_offset() + blockIdx.y * dim;
  const float r = inverse_rms(o + at, dim, eps, scratch);
  float dot = 0.0f;
  for (i64 i = threadIdx.x; i < dim; i += kThreads)
    dot += static_cast<float>(dy[at + i]) * w[i] * exact_silu(static_cast<float>(proj[z_at + i])) *
           static_cast<float>(o[at + i]) * r;
  __syncthreads();
  const float mean = block_sum(dot, scratch) / static_cast<float>(dim);
  for (i64 i = threadIdx.x; i < dim; i += kThreads) {
    const float g = static_cast<float>(dy[at + i]), z = static_cast<float>(proj[z_at + i]);
    const float normed = static_cast<float>(o[at + i]) * r;
    dproj[z_at + i] = static_cast<Real>(g * w[i] * normed * exact_silu_slope(z));
    d_o[at + i] = static_cast<Real>(r * (g * w[i] * exact_silu(z) - normed * mean));
  }
  if (threadIdx.x == 0) inverse[t * s.value_heads + blockIdx.y] = r;
}

// Where a head of q or k stands: blockIdx.y counts queries, then keys.
struct HeadAt {
  i64 proj, packed;  // in proj; in q or k
  bool query;
};
__device__ HeadAt head_at(const Attn& s) {
  const i64 t = blockIdx.x, D = s.head_dim;
  const int head = blockIdx.y, key = head - s.heads;
  if (head < s.heads) return {t * s.proj_dim() + 2 * head * D, (t * s.heads + head) * D, true};
  return {t * s.proj_dim() + s.k_offset() + key * D, (t * s.kv_heads + key) * D, false};
}

// Element i of a row in shared memory, turned by its position's angles; sign -1 turns back.
__device__ float turned(const float* row, const float* angles, int i, int rotary, float sign) {
  const int half = rotary / 2;
  if (i >= rotary) return row[i];
  const float c = angles[i % half], s = sign * angles[half + i % half];
  return i < half ? row[i] * c - row[i + half] * s : row[i] * c + row[i - half] * s;
}

template <typename Real>
__global__ void qk_norm_rope_fwd_kernel(Real* q, Real* k, const Real* proj, const float* wq, const float* wk,
                                        const float* rope, const i32* pos, Attn s, float eps) {
  extern __shared__ float row[];
  __shared__ float scratch[33];
  const HeadAt at = head_at(s);
  const float r = inverse_rms(proj + at.proj, s.head_dim, eps, scratch);
  for (int i = threadIdx.x; i < s.head_dim; i += kThreads)
    row[i] = static_cast<float>(proj[at.proj + i]) * r * (1.0f + (at.query ? wq : wk)[i]);
  __syncthreads();
  const float* angles = rope + i64{pos[blockIdx.x]} * s.rotary_dim;
  for (int i = threadIdx.x; i < s.head_dim; i += kThreads)
    (at.query ? q : k)[at.packed + i] = static_cast<Real>(turned(row, angles, i, s.rotary_dim, 1.0f));
}

// inverse [T, NH + NKV]
template <typename Real>
__global__ void qk_norm_rope_bwd_kernel(Real* dproj, float* inverse, const Real* dq, const Real* dk,
                                        const Real* proj, const float* wq, const float* wk, const float* rope,
                                        const i32* pos, Attn s, float eps) {
  extern __shared__ float row[];
  __shared__ float scratch[33];
  const HeadAt at = head_at(s);
  const float* w = at.query ? wq : wk;
  const float* angles = rope + i64{pos[blockIdx.x]} * s.rotary_dim;
  const float r = inverse_rms(proj + at.proj, s.head_dim, eps, scratch);
  for (int i = threadIdx.x; i < s.head_dim; i += kThreads)
    row[i] = static_cast<float>((at.query ? dq : dk)[at.packed + i]);
  __syncthreads();
  float dot = 0.0f;
  for (int i = threadIdx.x; i < s.head_dim; i += kThreads)
    dot += turned(row, angles, i, s.rotary_dim, -1.0f) * (1.0f + w[i]) *
           static_cast<float>(proj[at.proj + i]) * r;
  const float mean = block_sum(dot, scratch) / static_cast<float>(s.head_dim);
  for (int i = threadIdx.x; i < s.head_dim; i += kThreads) {
    const float g = turned(row, angles, i, s.rotary_dim, -1.0f) * (1.0f + w[i]);
    dproj[at.proj + i] = static_cast<Real>(r * (g - static_cast<float>(proj[at.proj + i]) * r * mean));
  }
  if (threadIdx.x == 0) inverse[i64{blockIdx.x} * gridDim.y + blockIdx.y] = r;
}

template <typename Real>
__global__ void swiglu_fwd_kernel(Real* act, const Real* gu, i64 T, i64 I) {
  for (i64 n = global_thread(); n < T * I; n += all_threads()) {
    const i64 at = n / I * 2 * I + n % I;
    act[n] = static_cast<Real>(exact_silu(static_cast<float>(gu[at])) * static_cast<float>(gu[at + I]));
  }
}

template <typename Real>
__global__ void swiglu_bwd_kernel(Real* dgu, Real* act_out, const Real* dact, const Real* gu, i64 T, i64 I) {
  for (i64 n = global_thread(); n < T * I; n += all_threads()) {
    const i64 at = n / I * 2 * I + n % I;
    const float gate = static_cast<float>(gu[at]), up = static_cast<float>(gu[at + I]);
    const float d = static_cast<float>(dact[n]);
    if (act_out) act_out[n] = static_cast<Real>(exact_silu(gate) * up);
    dgu[at] = static_cast<Real>(d * up * exact_silu_slope(gate));
    dgu[at + I] = static_cast<Real>(d * exact_silu(gate));
  }
}

template <typename Real>
__global__ void gather_rows_kernel(Real* dst, const Real* src, const i32* row, i64 H) {
  const i64 from = row[blockIdx.x];
  for (i64 i = threadIdx.x; i < H; i += kThreads)
    dst[blockIdx.x * H + i] = from < 0 ? static_cast<Real>(0.0f) : src[from * H + i];
}

template <typename Real>
__global__ void scatter_rows_kernel(Real* dst, const Real* src, const i32* row, i64 H) {
  const i64 to = row[blockIdx.x];
  if (to < 0) return;
  for (i64 i = threadIdx.x; i < H; i += kThreads) dst[to * H + i] = src[blockIdx.x * H + i];
}

__device__ float block_most(float v, float* scratch) {
  v = warp_max(v);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;
  __syncthreads();
  v = scratch[0];
  for (int i = 1; i < kThreads / 32; ++i) v = fmaxf(v, scratch[i]);
  __syncthreads();
  return v;
}

template <typename Real>
__global__ void cross_entropy_kernel(Real* z, float* nll, const i32* labels, i64 V, bool with_grad) {
  __shared__ float scratch[33];
  Real* row = z + blockIdx.x * V;
  const i32 label = labels[blockIdx.x];
  if (label < 0) {
    if (threadIdx.x == 0) nll[blockIdx.x] = 0.0f;
    for (i64 i = threadIdx.x; with_grad && i < V; i += kThreads) row[i] = static_cast<Real>(0.0f);
    return;
  }
  float most = -INFINITY, sum = 0.0f;
  for (i64 i = threadIdx.x; i < V; i += kThreads) most = fmaxf(most, static_cast<float>(row[i]));
  most = block_most(most, scratch);
  for (i64 i = threadIdx.x; i < V; i += kThreads) sum += expf(static_cast<float>(row[i]) - most);
  const float lse = most + logf(block_sum(sum, scratch));
  if (threadIdx.x == 0) nll[blockIdx.x] = lse - static_cast<float>(row[label]);
  __syncthreads();  // the label's logit is read before its place is written
  for (i64 i = threadIdx.x; with_grad && i < V; i += kThreads)
    row[i] = static_cast<Real>(expf(static_cast<float>(row[i]) - lse) - (i == label ? 1.0f : 0.0f));
}

// What each row adds to the gradient of a norm's scale.
template <typename Real>
struct NormTerm {
  const Real *dy, *x;
  const float* inverse;
  i64 H;
  __device__ float operator()(i64 row, i64 i) const {
    return static_cast<float>(dy[row * H + i]) * static_cast<float>(x[row * H + i]) * inverse[row];
  }
};

template <typename Real>
struct GatedNormTerm {
  const Real *dy, *o, *proj;
  const float* inverse;
  Gdn s;
  __device__ float operator()(i64 row, i64 i) const {
    const i64 t = row / s.value_heads, head = row % s.value_heads, at = row * s.value_dim + i;
    const float z = static_cast<float>(proj[t * s.proj_dim() + s.z_offset() + head * s.value_dim + i]);
    return static_cast<float>(dy[at]) * exact_silu(z) * static_cast<float>(o[at]) * inverse[row];
  }
};

template <typename Real>
struct RopeTerm {
  const Real *d, *proj;
  const float *inverse, *rope;
  const i32* pos;
  Attn s;
  int heads, first;  // of the queries or of the keys; `first` counts in `inverse`
  i64 offset, head_stride;
  __device__ float operator()(i64 row, i64 i) const {
    const i64 t = row / heads, head = row % heads;
    const Real* in = d + row * s.head_dim;
    const float* angles = rope + i64{pos[t]} * s.rotary_dim;
    const int half = s.rotary_dim / 2;
    float g = static_cast<float>(in[i]);
    if (i < half)
      g = g * angles[i] + static_cast<float>(in[i + half]) * angles[half + i];
    else if (i < s.rotary_dim)
      g = g * angles[i - half] - static_cast<float>(in[i - half]) * angles[i];
    return g * static_cast<float>(proj[t * s.proj_dim() + offset + head * head_stride + i]) *
           inverse[t * (s.heads + s.kv_heads) + first + head];
  }
};

unsigned rows_grid(i64 n) { return static_cast<unsigned>(std::min<i64>(ceil_div(n, kThreads), 4096)); }
dim3 by_head(i64 T, int heads) { return dim3(static_cast<unsigned>(T), static_cast<unsigned>(heads)); }

}  // namespace

size_t scratch_bytes(const GdnShape& gdn, const AttnShape& attn, i64 T, i64 H) {
  const i64 rows = T * std::max(gdn.value_heads, attn.heads + attn.kv_heads);
  const i64 widest = std::max<i64>({H, gdn.conv_dim() * gdn.conv_taps, attn.head_dim, gdn.value_dim});
  const i64 conv = T * gdn.conv_dim();  // gradients of the convolution's output
  return static_cast<size_t>(std::max(rows, conv) + kParts * widest) * sizeof(float);
}

template <typename Real>
void RowOps<Real>::embedding_fwd(Real* x, const Real* table, const i32* tok, i64 T, i64 H,
                                 cudaStream_t stream) {
  embedding_fwd_kernel<<<static_cast<unsigned>(T), kThreads, 0, stream>>>(x, table, tok, H);
  check_launch("embedding_fwd (reference)");
}

template <typename Real>
void RowOps<Real>::embedding_bwd(void* d_table, DType grad, const Real* dx, const Batch& b, i64 H,
                                 cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(b.num_unique_cap);
  if (grad == DType::f32)
    embedding_bwd_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<float*>(d_table), dx, b.unique_id,
                                                          b.unique_ptr, b.unique_pos, H);
  else
    embedding_bwd_kernel<<<blocks, kThreads, 0, stream>>>(static_cast<bf16*>(d_table), dx, b.unique_id,
                                                          b.unique_ptr, b.unique_pos, H);
  check_launch("embedding_bwd (reference)");
}

template <typename Real>
void RowOps<Real>::rmsnorm_fwd(Real* y, const Real* x, const float* w, i64 rows, i64 H, float eps,
                               cudaStream_t stream) {
  rmsnorm_fwd_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(y, x, w, H, eps);
  check_launch("rmsnorm_fwd (reference)");
}

template <typename Real>
void RowOps<Real>::rmsnorm_bwd(Real* dx, float* dw, const Real* dy, const Real* x, const float* w,
                               const Real* dres, i64 rows, i64 H, float eps, float* scratch,
                               cudaStream_t stream) {
  rmsnorm_bwd_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(dx, scratch, dy, x, w, dres, H,
                                                                           eps);
  sum_columns(dw, rows, H, scratch + rows, NormTerm<Real>{dy, x, scratch, H}, stream);
  check_launch("rmsnorm_bwd (reference)");
}

template <typename Real>
void RowOps<Real>::gated_norm_fwd(Real* y, const Real* o, const Real* proj, const float* w, i64 T,
                                  const GdnShape& s, float eps, cudaStream_t stream) {
  gated_norm_fwd_kernel<<<by_head(T, s.value_heads), kThreads, 0, stream>>>(y, o, proj, w, s, eps);
  check_launch("gated_norm_fwd (reference)");
}

template <typename Real>
void RowOps<Real>::gated_norm_bwd(Real* d_o, Real* dproj, float* dw, const Real* dy, const Real* o,
                                  const Real* proj, const float* w, i64 T, const GdnShape& s, float eps,
                                  float* scratch, cudaStream_t stream) {
  gated_norm_bwd_kernel<<<by_head(T, s.value_heads), kThreads, 0, stream>>>(d_o, dproj, scratch, dy, o, proj,
                                                                            w, s, eps);
  const i64 rows = T * s.value_heads;
  sum_columns(dw, rows, s.value_dim, scratch + rows, GatedNormTerm<Real>{dy, o, proj, scratch, s}, stream);
  check_launch("gated_norm_bwd (reference)");
}

template <typename Real>
void RowOps<Real>::qk_norm_rope_fwd(Real* q, Real* k, const Real* proj, const float* wq, const float* wk,
                                    const float* rope, const Batch& b, const AttnShape& s, float eps,
                                    cudaStream_t stream) {
  const size_t shared = static_cast<size_t>(s.head_dim) * sizeof(float);
  qk_norm_rope_fwd_kernel<<<by_head(b.T, s.heads + s.kv_heads), kThreads, shared, stream>>>(
      q, k, proj, wq, wk, rope, b.pos, s, eps);
  check_launch("qk_norm_rope_fwd (reference)");
}

template <typename Real>
void RowOps<Real>::qk_norm_rope_bwd(Real* dproj, float* dwq, float* dwk, const Real* dq, const Real* dk,
                                    const Real* proj, const float* wq, const float* wk, const float* rope,
                                    const Batch& b, const AttnShape& s, float eps, float* scratch,
                                    cudaStream_t stream) {
  const int all = s.heads + s.kv_heads;
  const size_t shared = static_cast<size_t>(s.head_dim) * sizeof(float);
  qk_norm_rope_bwd_kernel<<<by_head(b.T, all), kThreads, shared, stream>>>(dproj, scratch, dq, dk, proj, wq,
                                                                           wk, rope, b.pos, s, eps);
  float* partial = scratch + i64{b.T} * all;
  const RopeTerm<Real> queries{dq, proj, scratch, rope, b.pos, s, s.heads, 0, 0, 2 * s.head_dim};
  const RopeTerm<Real> keys{dk, proj, scratch, rope, b.pos, s, s.kv_heads, s.heads, s.k_offset(), s.head_dim};
  sum_columns(dwq, i64{b.T} * s.heads, s.head_dim, partial, queries, stream);
  sum_columns(dwk, i64{b.T} * s.kv_heads, s.head_dim, partial, keys, stream);
  check_launch("qk_norm_rope_bwd (reference)");
}

template <typename Real>
void RowOps<Real>::swiglu_fwd(Real* act, const Real* gu, i64 T, i64 I, cudaStream_t stream) {
  swiglu_fwd_kernel<<<rows_grid(T * I), kThreads, 0, stream>>>(act, gu, T, I);
  check_launch("swiglu_fwd (reference)");
}

template <typename Real>
void RowOps<Real>::swiglu_bwd(Real* dgu, Real* act_out, const Real* dact, const Real* gu, i64 T, i64 I,
                              cudaStream_t stream) {
  swiglu_bwd_kernel<<<rows_grid(T * I), kThreads, 0, stream>>>(dgu, act_out, dact, gu, T, I);
  check_launch("swiglu_bwd (reference)");
}

template <typename Real>
void RowOps<Real>::gather_rows(Real* dst, const Real* src, const i32* row, i64 rows, i64 H,
                               cudaStream_t stream) {
  gather_rows_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(dst, src, row, H);
  check_launch("gather_rows (reference)");
}

template <typename Real>
void RowOps<Real>::scatter_rows(Real* dst, const Real* src, const i32* row, i64 rows, i64 T, i64 H,
                                cudaStream_t stream) {
  check_cuda(cudaMemsetAsync(dst, 0, static_cast<size_t>(T * H) * sizeof(Real), stream), "scatter_rows");
  scatter_rows_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(dst, src, row, H);
  check_launch("scatter_rows (reference)");
}

template <typename Real>
void RowOps<Real>::cross_entropy(Real* z, float* nll, const i32* label, i64 rows, i64 V, bool with_grad,
                                 cudaStream_t stream) {
  cross_entropy_kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(z, nll, label, V, with_grad);
  check_launch("cross_entropy (reference)");
}

template struct RowOps<bf16>;
template struct RowOps<float>;

}  // namespace tessera::reference
