// The portable tensor-core layer (sm_80 and later): bf16 tiles in shared memory, ldmatrix, mma.sync,
// cp.async.
//
// A tile is row-major with 64, 128 or 256 bf16 a row; its 16-byte chunks are swizzled (chunk ^= row & 7), so
// that ldmatrix and the fragment stores below touch each bank once. Tile bases are multiples of 128 bytes.
//
// Fragments of mma.m16n8k16 (lane l, g = l / 4, q = l % 4):
//   A  a0 (row g, cols 2q..), a1 (row g + 8, cols 2q..), a2 (row g, cols 2q + 8..), a3 (row g + 8, cols 2q
//   + 8..) B  b0 (k 2q.., col g), b1 (k 2q + 8.., col g); the loads below fetch two n8 tiles: {b0, b1, b0',
//   b1'} C  c0, c1 (row g, cols 2q..), c2, c3 (row g + 8, cols 2q..)
// so two adjacent n8 tiles of C pack into one A fragment.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace tessera {

using u32 = std::uint32_t;

struct Frag {
  u32 r[4];
};

__device__ __forceinline__ u32 shared_address(const void* p) {
  return static_cast<u32>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ Frag ldmatrix(u32 address) {
  Frag f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(address)
               : "memory");
  return f;
}

__device__ __forceinline__ Frag ldmatrix_trans(u32 address) {
  Frag f;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(f.r[0]), "=r"(f.r[1]), "=r"(f.r[2]), "=r"(f.r[3])
               : "r"(address)
               : "memory");
  return f;
}

// c[16,8] += a[16,16] b[16,8]
__device__ __forceinline__ void mma(float (&c)[4], const Frag& a, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b0), "r"(b1));
}

// c0, c1 [16,8] += a[16,16] b[16,16]
__device__ __forceinline__ void mma_pair(float (&c0)[4], float (&c1)[4], const Frag& a, const Frag& b) {
  mma(c0, a, b.r[0], b.r[1]);
  mma(c1, a, b.r[2], b.r[3]);
}

__device__ __forceinline__ u32 pack_bf16(float lo, float hi) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(lo, hi);
  return *reinterpret_cast<const u32*>(&pair);
}
__device__ __forceinline__ float low_float(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_float(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ __forceinline__ u32 scale_bf16(u32 pair, float lo, float hi) {
  return pack_bf16(low_float(pair) * lo, high_float(pair) * hi);
}

// The C tiles of columns 16n.. and 16n + 8.. as the A fragment of k step n.
__device__ __forceinline__ Frag to_a_frag(const float (&c0)[4], const float (&c1)[4]) {
  return {
      {pack_bf16(c0[0], c0[1]), pack_bf16(c0[2], c0[3]), pack_bf16(c1[0], c1[1]), pack_bf16(c1[2], c1[3])}};
}

// 2^x, subnormal results flushed to zero.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The 8 x 8 matrix of which lane l holds row l / 4, columns 2 (l % 4).., transposed.
__device__ __forceinline__ u32 transpose8x8(u32 pair) {
  u32 out;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(out) : "r"(pair));
  return out;
}

// 16 bytes from global to shared memory; where `valid` is false zeros, and src is not read.
__device__ __forceinline__ void copy_async16(u32 dst, const void* src, bool valid = true) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
// The same for 4 bytes.
__device__ __forceinline__ void copy_async4(u32 dst, const void* src, bool valid) {
  const int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// 16 bytes to global memory in one piece: the compiler splits a uint4 whose words were apart.
__device__ __forceinline__ void store_global16(void* dst, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(dst), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// The same where `valid`, without a branch: so that what several of them write is ready before the first.
__device__ __forceinline__ void store_global16_if(bool valid, void* dst, uint4 v) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %5, 0;\n"
      "@p st.global.v4.u32 [%0], {%1,%2,%3,%4}; }" ::"l"(dst),
      "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(static_cast<int>(valid))
      : "memory");
}

// A barrier of `threads` threads of the block; id 1..15 (0 is __syncthreads).
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// The same where warps come to one barrier from different places of the program. PTX allows bar.sync for that
// too, but compute-sanitizer's synccheck takes it for divergence.
__device__ __forceinline__ void named_barrier_anywhere(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Counts the calling threads in without waiting for the others.
__device__ __forceinline__ void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Hides where a value comes from, so that what depends on it is computed again in every turn of a loop
// instead of being kept in registers across all turns.
__device__ __forceinline__ int opaque(int v) {
  asm volatile("" : "+r"(v));
  return v;
}

// A bf16 tile with kCols columns, as one lane of a warp sees it. Rows of fragments start at multiples of 8
// and columns at multiples of 16, so that the swizzle is an exclusive or of the whole address.
template <int kCols>
struct Tile {
  static constexpr int kRowBytes = kCols * 2;
  u32 base;
  int lane;

  __device__ __forceinline__ Tile(u32 address, int lane) : base(address), lane(lane) {}

  // Of the 16-byte chunk `chunk` (8 columns) of a row.
  __device__ __forceinline__ u32 at(int row, int chunk) const {
    return (base + row * kRowBytes + ((row & 7) << 4)) ^ (chunk << 4);
  }
  // A[m0.., k0..] where the tile holds A by rows.
  __device__ __forceinline__ Frag a(int m0, int k0) const {
    return ldmatrix((by_rows() + m0 * kRowBytes) ^ (k0 << 1));
  }
  // A[m0.., k0..] where the tile holds A^T by rows.
  __device__ __forceinline__ Frag a_trans(int m0, int k0) const {
    return ldmatrix_trans((by_pairs() ^ (m0 << 1)) + k0 * kRowBytes);
  }
  // B[k0.., n0..n0+15] where the tile holds B by rows (k).
  __device__ __forceinline__ Frag b(int k0, int n0) const {
    return ldmatrix_trans((by_rows() ^ (n0 << 1)) + k0 * kRowBytes);
  }
  // B[k0.., n0..n0+15] where the tile holds B^T by rows (n).
  __device__ __forceinline__ Frag b_trans(int k0, int n0) const {
    return ldmatrix((by_pairs() ^ (k0 << 1)) + n0 * kRowBytes);
  }
  // The pair of elements (row, 8 * n8 + 2 * (lane % 4)) that a lane's C fragment holds.
  __device__ __forceinline__ u32 load_pair(int row, int n8) const {
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(at(row, n8) + lane % 4 * 4) : "memory");
    return value;
  }
  __device__ __forceinline__ void store_pair(int row, int n8, u32 value) const {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at(row, n8) + lane % 4 * 4), "r"(value) : "memory");
  }
  __device__ __forceinline__ uint4 load16(int row, int chunk) const {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at(row, chunk))
                 : "memory");
    return v;
  }
  __device__ __forceinline__ void store16(int row, int chunk, uint4 v) const {
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at(row, chunk)), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
  }

 private:
  // Lanes 0-15 address rows 0-15 of the left 8 columns, lanes 16-31 the same rows of the right 8.
  __device__ __forceinline__ u32 by_rows() const {
    return base + (lane & 15) * kRowBytes + (((lane >> 4) ^ (lane & 7)) << 4);
  }
  // Lanes 0-7 address rows 0-7 left, 8-15 rows 0-7 right, 16-23 rows 8-15 left, 24-31 rows 8-15 right.
  __device__ __forceinline__ u32 by_pairs() const {
    return base + ((lane & 7) + (lane >> 4) * 8) * kRowBytes + ((((lane >> 3) & 1) ^ (lane & 7)) << 4);
  }
};

// Fills rows 0..kRows-1 of `tile` from src (row-major, `stride` elements a row); rows >= valid become zero;
// Of rows >= valid nothing is read.
template <int kRows, int kThreads, int kCols>
__device__ __forceinline__ void load_tile(const Tile<kCols>& tile, const __nv_bfloat16* src, size_t stride,
                                          int valid, int thread) {
  constexpr int kChunks = kCols / 8;
  constexpr int kRowsAStep = kThreads / kChunks;
  static_assert(kThreads % kChunks == 0 && kRows % kRowsAStep == 0);
  const int row = thread / kChunks, chunk = thread % kChunks;
  src += row * stride + chunk * 8;
#pragma unroll
  for (int step = 0; step < kRows / kRowsAStep; ++step) {
    const bool ok = row + step * kRowsAStep < valid;
    // Eight rows on, the swizzle repeats.
    const u32 dst = kRowsAStep % 8 == 0 ? tile.at(row, chunk) + step * kRowsAStep * kCols * 2
                                        : tile.at(row + step * kRowsAStep, chunk);
    copy_async16(dst, src + step * kRowsAStep * stride, ok);
  }
}

}  // namespace tessera
