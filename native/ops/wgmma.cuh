// Hopper's warpgroup matrix products (sm_90a): bf16 operands, fp32 sums.
//
// Tiles lie in shared memory as panels of 64 columns, [rows][128 bytes], 1024-byte aligned, 16-byte chunks
// swizzled by row & 7: each panel is a Tile<64>, and the hardware's 128-byte swizzle. A tile [rows][columns]
// is K-major where its columns are summed over, MN-major where its rows are. Accumulators are laid out as
// those of mma.m16n8k16, warp w of the warpgroup holding rows 16w..16w+15 (tensor_core.cuh). Reference: PTX
// ISA 8.x, "Asynchronous warpgroup level matrix shared memory layout".
#pragma once

#include "ops/tensor_core.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TESSERA_WGMMA 1
#endif

namespace tessera {

using u64 = std::uint64_t;

// Writes of this thread to shared memory (cp.async too, once waited for) become visible to products issued
// after a barrier.
__device__ __forceinline__ void fence_shared_for_wgmma() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Fills a tile of kColumns / 64 panels; rows >= valid become zero and are not read.
template <int kRows, int kColumns, int kThreads>
__device__ __forceinline__ void load_panels(u32 base, const __nv_bfloat16* src, size_t stride, int valid,
                                            int thread) {
  constexpr int kChunks = kColumns / 8, kRowsAStep = kThreads / kChunks;
  static_assert(kThreads % kChunks == 0 && kRows % kRowsAStep == 0);
  const int row0 = thread / kChunks, chunk = thread % kChunks;
  const u32 panel = base + chunk / 8 * (kRows * 128);
  src += row0 * stride + chunk * 8;
#pragma unroll
  for (int step = 0; step < kRows / kRowsAStep; ++step) {
    const int row = row0 + step * kRowsAStep;
    const bool ok = row < valid;
    copy_async16(panel + row * 128 + (((chunk ^ row) & 7) << 4), src + step * kRowsAStep * stride, ok);
  }
}

#ifdef TESSERA_WGMMA

__device__ __forceinline__ u64 wgmma_descriptor(u32 address, u32 leading_bytes, u32 stride_bytes) {
  constexpr u64 kSwizzle128 = u64{1} << 62;
  return kSwizzle128 | (u64{stride_bytes >> 4} << 32) | (u64{leading_bytes >> 4} << 16) | (address >> 4);
}
// Columns 16k.. of a tile whose columns are summed over.
template <int kRows>
__device__ __forceinline__ u64 k_major(u32 tile, int k) {
  return wgmma_descriptor(tile, 16, 1024) + (k / 4 * (kRows * 128) + k % 4 * 32) / 16;
}
// Rows 16k.. of a tile whose rows are summed over.
template <int kRows>
__device__ __forceinline__ u64 mn_major(u32 tile, int k) {
  return wgmma_descriptor(tile, kRows * 128, 1024) + k * 2048 / 16;
}

// Before the first product of a group: registers written so far are visible to it.
__device__ __forceinline__ void wgmma_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving uses of accumulators across the point where they are (or are not yet) valid.
template <int kTiles>
__device__ __forceinline__ void wgmma_fence(float (&c)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(c[n][i])::"memory");
}

// Gives registers to, or takes them from, the calling warpgroup: all its warps, in one branch of the kernel.
template <int kRegisters>
__device__ __forceinline__ void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// Bulk copies between shared and global memory: one thread moves a whole tile, whose bytes keep their order.
// A load ends at a barrier in shared memory (8 bytes; the phase flips with every load), a store when waited
// for.
__device__ __forceinline__ void bulk_barrier_init(u32 barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void bulk_load(u32 dst, const void* src, u32 bytes, u32 barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
      "l"(src), "r"(bytes), "r"(barrier)
      : "memory");
}
__device__ __forceinline__ void bulk_wait_load(u32 barrier, u32 phase) {
  asm volatile(
      "{ .reg .pred p;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra again; }" ::"r"(barrier),
      "r"(phase)
      : "memory");
}
__device__ __forceinline__ void bulk_store(void* dst, u32 src, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Of this thread's stores: shared memory may be written again.
__device__ __forceinline__ void bulk_wait_stores() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Writes an A fragment (rows m, columns k) transposed: into rows k of a tile of 64 columns. at: see
// transposed_at.
__device__ __forceinline__ void store_transposed(u32 at, const Frag& f) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
               "r"(f.r[0]), "r"(f.r[1]), "r"(f.r[2]), "r"(f.r[3])
               : "memory");
}
// The lane's address for a fragment of rows m0.. and columns 0..15; for columns 16k.. add 2048 k.
__device__ __forceinline__ u32 transposed_at(u32 tile, int m0, int lane) {
  const int row = (lane & 7) + (lane >> 4) * 8, chunk = m0 / 8 + ((lane >> 3) & 1);
  return tile + row * 128 + ((chunk ^ (row & 7)) << 4);
}

#define TESSERA_C4(c, i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
#define TESSERA_C16(c, i) TESSERA_C4(c, i), TESSERA_C4(c, i + 1), TESSERA_C4(c, i + 2), TESSERA_C4(c, i + 3)

// c[64,32] (+)= a[64,16] b[16,32]; a and b in shared memory, both K-major.
__device__ __forceinline__ void wgmma_shared_32(float (&c)[4][4], u64 a, u64 b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %18, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
      "}, %16, %17, p, 1, 1, 0, 0; }"
      : TESSERA_C16(c, 0)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

// Whether an operand in shared memory is K-major (its rows are rows of a, columns of b) or MN-major.
enum class Major : int { k = 0, mn = 1 };

// c[64,64] (+)= a[64,16] b[16,64]; a and b in shared memory.
template <Major kA = Major::k, Major kB = Major::k>
__device__ __forceinline__ void wgmma_shared_64(float (&c)[8][4], u64 a, u64 b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, %32, %33, p, 1, 1, %35, %36; }"
      : TESSERA_C16(c, 0), TESSERA_C16(c, 4)
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(kA)),
        "n"(static_cast<int>(kB)));
}

// c[64,64] (+)= a[64,16] b[16,64]; a in registers (A fragments of each warp's 16 rows), b in shared memory.
template <Major kB>
__device__ __forceinline__ void wgmma_registers_64(float (&c)[8][4], const Frag& a, u64 b, bool accumulate) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%32, %33, %34, %35}, %36, p, 1, 1, %38; }"
      : TESSERA_C16(c, 0), TESSERA_C16(c, 4)
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b), "r"(static_cast<int>(accumulate)),
        "n"(static_cast<int>(kB)));
}

// c[64,128] += a[64,16] b[16,128]; a in registers, b in shared memory, MN-major.
__device__ __forceinline__ void wgmma_registers_128(float (&c)[16][4], const Frag& a, u64 b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
      : TESSERA_C16(c, 0), TESSERA_C16(c, 4), TESSERA_C16(c, 8), TESSERA_C16(c, 12)
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b));
}

// c[64,256] += a[64,16] b[16,256]; a in registers (A fragments of each warp's 16 rows), b in shared memory,
// MN-major.
__device__ __forceinline__ void wgmma_registers_256(float (&c)[32][4], const Frag& a, u64 b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;"
      : TESSERA_C16(c, 0), TESSERA_C16(c, 4), TESSERA_C16(c, 8), TESSERA_C16(c, 12), TESSERA_C16(c, 16),
        TESSERA_C16(c, 20), TESSERA_C16(c, 24), TESSERA_C16(c, 28)
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "l"(b));
}

#undef TESSERA_C16
#undef TESSERA_C4

#endif
}  // namespace tessera
