// cuBLASLt, opened at run time (no header of it is needed to build), and the choice of an algorithm per
// product.
//
// A product is column-major C-style cuBLAS: D[m,n] = op(A) op(B) + beta C, A and B bf16 or fp32, sums in
// fp32. The algorithm for a product is found once: the heuristic's first 16 are timed on the buffers in hand,
// and the fastest is written to a file named after the library's version and the GPU, so that later runs give
// the same bits.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <string>

#include "core/dynamic_library.h"
#include "ops/backend.h"
#include "ops/linear/product_choices.h"

namespace tessera {

struct MatrixProduct {
  i64 m, n, k;
  bool transpose_a, transpose_b;
  const void* a;
  i64 lda;
  const void* b;
  i64 ldb;
  const void* c;  // null: beta 0; may be d itself; ldc = ldd, of d's type
  void* d;
  i64 ldd;
  DType d_type;                 // bf16 or f32
  DType ab_type = DType::bf16;  // of A and B: bf16, or f32 (then in full fp32, without tf32)
};

class CublasLt {
 public:
  // Null where the library is absent; `why` then says what was tried.
  static std::unique_ptr<CublasLt> open(const std::string& gpu_name, std::string* why);
  ~CublasLt();

  std::string description() const;  // "cuBLASLt 130100 (/path/libcublasLt.so.13)"
  void set_workspace(void* p, size_t bytes);
  bool has_algorithm(const MatrixProduct& product) const;
  // Times candidates by running the product; with C == D (accumulation) takes the one of the same product
  // without C.
  void choose_algorithm(const MatrixProduct& product, cudaStream_t stream);
  void multiply(const MatrixProduct& product, cudaStream_t stream);  // chooses first where needed

 private:
  struct Functions;
  struct Plan;
  explicit CublasLt(std::unique_ptr<DynamicLibrary> library);
  Plan& plan(const MatrixProduct& product);
  void run(const Plan& plan, const MatrixProduct& product, const void* algorithm, cudaStream_t stream) const;

  std::unique_ptr<DynamicLibrary> library_;
  std::unique_ptr<Functions> api_;
  void* handle_ = nullptr;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  std::map<std::string, std::unique_ptr<Plan>> plans_;
  ProductChoices choices_;  // of algorithms, their 64 bytes in hexadecimal
};

}  // namespace tessera
