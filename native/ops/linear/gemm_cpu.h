// Matrix product on one thread, the building block of every operation with a contraction.
#pragma once

#include "ops/backend.h"
#include "ops/cpu/isa.h"

namespace tessera::TESSERA_ISA {

// Element (i, j) of a matrix stands at data[i * row + j * col].
template <class Real>
struct View {
  const Real* data;
  i64 row;
  i64 col;
};
template <class Real>
View<Real> plain(const Real* data, i64 stride) {
  return {data, stride, 1};
}
template <class Real>
View<Real> transposed(const Real* data, i64 stride) {
  return {data, 1, stride};
}

// c[M,N] (row stride ldc) = a[M,K] b[K,N], or += where accumulate. Every element is summed over k in the same
// order wherever it stands in c, so a row's result does not depend on the rows around it.
template <class Real>
void gemm(i64 M, i64 N, i64 K, View<Real> a, View<Real> b, Real* c, i64 ldc, bool accumulate = false);

// The same over fixed blocks of c on several threads.
template <class Real>
void parallel_gemm(int threads, i64 M, i64 N, i64 K, View<Real> a, View<Real> b, Real* c, i64 ldc,
                   bool accumulate);

}  // namespace tessera::TESSERA_ISA
