#include "ops/rows/rows_cpu.h"

#include <cstring>

#include "ops/cpu/parallel.h"

namespace tessera::TESSERA_ISA {

template <class Real>
void gather_rows(int threads, Real* dst, const Real* src, const i32* row, i64 rows, i64 H) {
  const size_t bytes = static_cast<size_t>(H) * sizeof(Real);
  parallel_blocks(threads, rows, 64, [&](i64 begin, i64 end, i64) {
    for (i64 i = begin; i < end; ++i) {
      if (row[i] < 0) {
        std::memset(dst + i * H, 0, bytes);
      } else {
        std::memcpy(dst + i * H, src + i64{row[i]} * H, bytes);
      }
    }
  });
}

template <class Real>
void scatter_rows(int threads, Real* dst, const Real* src, const i32* row, i64 rows, i64 T, i64 H) {
  const size_t bytes = static_cast<size_t>(H) * sizeof(Real);
  parallel_blocks(threads, T, 64, [&](i64 begin, i64 end, i64) {
    std::memset(dst + begin * H, 0, bytes * static_cast<size_t>(end - begin));
  });
  parallel_blocks(threads, rows, 64, [&](i64 begin, i64 end, i64) {
    for (i64 i = begin; i < end; ++i) {
      if (row[i] >= 0) std::memcpy(dst + i64{row[i]} * H, src + i * H, bytes);
    }
  });
}

TESSERA_INSTANTIATE(gather_rows);
TESSERA_INSTANTIATE(scatter_rows);

}  // namespace tessera::TESSERA_ISA
