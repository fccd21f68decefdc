#ifdef TESSERA_WITH_CUDA
#include "ops/linear/cublaslt.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <vector>

#include "core/error.h"

namespace tessera {
namespace fs = std::filesystem;

// Prototypes and numbers of cublasLt.h (the same in CUDA 12 and 13).
namespace {

constexpr int kCompute32F = 68, kReal32F = 0, kRealBf16 = 14, kTransposed = 1;
constexpr int kDescTransA = 3, kDescTransB = 4;
constexpr int kPreferenceWorkspace = 1, kPreferenceAlignmentA = 5;
constexpr int kCandidates = 16;

struct Algorithm {
  std::uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

void check(int status, const char* what) {
  if (status == 0) return;
  throw EngineError("cublaslt_error", std::string(what) + " failed with status " + std::to_string(status),
                    "Check that the cuBLASLt library belongs to the driver's CUDA version.");
}

std::string to_hex(const Algorithm& algorithm) {
  std::string text;
  char word[17];
  for (std::uint64_t part : algorithm.data) {
    std::snprintf(word, sizeof word, "%016llx", static_cast<unsigned long long>(part));
    text += word;
  }
  return text;
}

bool from_hex(const std::string& text, Algorithm& algorithm) {
  if (text.size() != 128) return false;
  for (int i = 0; i < 8; ++i) {
    char* end = nullptr;
    const std::string word = text.substr(16 * i, 16);
    algorithm.data[i] = std::strtoull(word.c_str(), &end, 16);
    if (*end != '\0') return false;
  }
  return true;
}

// The largest power of two up to 256 that divides an address.
unsigned alignment_of(const void* p) {
  const size_t address = reinterpret_cast<size_t>(p) | 256;
  return static_cast<unsigned>(address & ~(address - 1));
}

std::string key_of(const MatrixProduct& p) {
  char text[200];
  std::snprintf(text, sizeof text, "%c%c m%lld n%lld k%lld a%lld b%lld d%lld %s%s al%u,%u,%u",
                p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', static_cast<long long>(p.m),
                static_cast<long long>(p.n), static_cast<long long>(p.k), static_cast<long long>(p.lda),
                static_cast<long long>(p.ldb), static_cast<long long>(p.ldd),
                p.ab_type == DType::f32  ? "full"
                : p.d_type == DType::f32 ? "f32"
                                         : "bf16",
                p.c == nullptr ? "" : (p.c == p.d ? "+=" : "+c"), alignment_of(p.a), alignment_of(p.b),
                alignment_of(p.d));
  return text;
}

fs::path choices_folder() {
  if (const char* named = std::getenv("TESSERA_GEMM_CACHE")) return named;
  if (const char* cache = std::getenv("XDG_CACHE_HOME")) return fs::path(cache) / "tessera";
  if (const char* home = std::getenv("HOME")) return fs::path(home) / ".cache" / "tessera";
  return fs::temp_directory_path() / "tessera";
}

}  // namespace

struct CublasLt::Functions {
  int (*create)(void**);
  int (*destroy)(void*);
  size_t (*version)();
  int (*desc_create)(void**, int, int);
  int (*desc_destroy)(void*);
  int (*desc_set)(void*, int, const void*, size_t);
  int (*layout_create)(void**, int, std::uint64_t, std::uint64_t, std::int64_t);
  int (*layout_destroy)(void*);
  int (*preference_create)(void**);
  int (*preference_destroy)(void*);
  int (*preference_set)(void*, int, const void*, size_t);
  int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*);
  int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*,
                void*, void*, void*, const Algorithm*, void*, size_t, cudaStream_t);
};

struct CublasLt::Plan {
  const Functions* api;
  void* desc = nullptr;
  void *a = nullptr, *b = nullptr, *d = nullptr;
  Algorithm algorithm{};
  bool chosen = false;
  ~Plan() {
    for (void* layout : {a, b, d}) {
      if (layout) api->layout_destroy(layout);
    }
    if (desc) api->desc_destroy(desc);
  }
};

CublasLt::CublasLt(std::unique_ptr<DynamicLibrary> library)
    : library_(std::move(library)), api_(std::make_unique<Functions>()) {
  library_->load(api_->create, "cublasLtCreate");
  library_->load(api_->destroy, "cublasLtDestroy");
  library_->load(api_->version, "cublasLtGetVersion");
  library_->load(api_->desc_create, "cublasLtMatmulDescCreate");
  library_->load(api_->desc_destroy, "cublasLtMatmulDescDestroy");
  library_->load(api_->desc_set, "cublasLtMatmulDescSetAttribute");
  library_->load(api_->layout_create, "cublasLtMatrixLayoutCreate");
  library_->load(api_->layout_destroy, "cublasLtMatrixLayoutDestroy");
  library_->load(api_->preference_create, "cublasLtMatmulPreferenceCreate");
  library_->load(api_->preference_destroy, "cublasLtMatmulPreferenceDestroy");
  library_->load(api_->preference_set, "cublasLtMatmulPreferenceSetAttribute");
  library_->load(api_->heuristic, "cublasLtMatmulAlgoGetHeuristic");
  library_->load(api_->matmul, "cublasLtMatmul");
  check(api_->create(&handle_), "cublasLtCreate");
}

std::unique_ptr<CublasLt> CublasLt::open(const std::string& gpu_name, std::string* why) {
  auto library = DynamicLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12"}, why);
  if (!library) return nullptr;
  std::unique_ptr<CublasLt> opened(new CublasLt(std::move(library)));
  std::string name = "gemm-" + std::to_string(opened->api_->version()) + "-" + gpu_name + ".txt";
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '/'; }, '-');
  opened->choices_.open((choices_folder() / name).string());
  return opened;
}

CublasLt::~CublasLt() {
  plans_.clear();
  if (handle_) api_->destroy(handle_);
}

std::string CublasLt::description() const {
  return "cuBLASLt " + std::to_string(api_->version()) + " (" + library_->path() + ")";
}

void CublasLt::set_workspace(void* p, size_t bytes) {
  workspace_ = p;
  workspace_bytes_ = bytes;
}

CublasLt::Plan& CublasLt::plan(const MatrixProduct& p) {
  const std::string key = key_of(p);
  if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
  auto made = std::make_unique<Plan>();
  made->api = api_.get();
  check(api_->desc_create(&made->desc, kCompute32F, kReal32F), "cublasLtMatmulDescCreate");
  const int transposed = kTransposed;
  if (p.transpose_a)
    check(api_->desc_set(made->desc, kDescTransA, &transposed, sizeof transposed), "transpose A");
  if (p.transpose_b)
    check(api_->desc_set(made->desc, kDescTransB, &transposed, sizeof transposed), "transpose B");
  const auto layout = [&](void** out, int type, bool t, i64 rows, i64 cols, i64 ld) {
    check(api_->layout_create(out, type, t ? cols : rows, t ? rows : cols, ld), "cublasLtMatrixLayoutCreate");
  };
  const int operand = p.ab_type == DType::f32 ? kReal32F : kRealBf16;
  layout(&made->a, operand, p.transpose_a, p.m, p.k, p.lda);
  layout(&made->b, operand, p.transpose_b, p.k, p.n, p.ldb);
  layout(&made->d, p.d_type == DType::f32 ? kReal32F : kRealBf16, false, p.m, p.n, p.ldd);
  made->chosen = from_hex(choices_.find(key), made->algorithm);
  return *(plans_[key] = std::move(made));
}

void CublasLt::run(const Plan& plan, const MatrixProduct& p, const void* algorithm,
                   cudaStream_t stream) const {
  const float one = 1.0f, beta = p.c ? 1.0f : 0.0f;
  const int status =
      api_->matmul(handle_, plan.desc, &one, p.a, plan.a, p.b, plan.b, &beta, p.c ? p.c : p.d, plan.d, p.d,
                   plan.d, static_cast<const Algorithm*>(algorithm), workspace_, workspace_bytes_, stream);
  check(status, ("cublasLtMatmul " + key_of(p)).c_str());
}

bool CublasLt::has_algorithm(const MatrixProduct& product) const {
  const std::string key = key_of(product);
  const auto found = plans_.find(key);
  return (found != plans_.end() && found->second->chosen) || !choices_.find(key).empty();
}

void CublasLt::choose_algorithm(const MatrixProduct& product, cudaStream_t stream) {
  Plan& chosen = plan(product);
  if (chosen.chosen) return;

  void* preference = nullptr;
  check(api_->preference_create(&preference), "cublasLtMatmulPreferenceCreate");
  const auto set = [&](int attribute, const void* value, size_t bytes) {
    check(api_->preference_set(preference, attribute, value, bytes), "cublasLtMatmulPreferenceSetAttribute");
  };
  const std::uint64_t workspace = workspace_bytes_;
  set(kPreferenceWorkspace, &workspace, sizeof workspace);
  const void* operands[4] = {product.a, product.b, product.c ? product.c : product.d, product.d};
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t bytes = alignment_of(operands[i]);
    set(kPreferenceAlignmentA + i, &bytes, sizeof bytes);
  }
  Heuristic found[kCandidates];
  int count = 0;
  const int status = api_->heuristic(handle_, chosen.desc, chosen.a, chosen.b, chosen.d, chosen.d, preference,
                                     kCandidates, found, &count);
  api_->preference_destroy(preference);
  check(status, ("cublasLtMatmulAlgoGetHeuristic " + key_of(product)).c_str());
  if (count == 0) throw EngineError("cublaslt_error", "cuBLASLt has no algorithm for " + key_of(product));

  chosen.algorithm = found[0].algorithm;
  if (product.c == product.d) {
    // Timing would accumulate into D: take what was fastest without C, where it serves.
    MatrixProduct plain = product;
    plain.c = nullptr;
    const Plan& other = plan(plain);
    if (other.chosen) chosen.algorithm = other.algorithm;
  } else if (product.ab_type == DType::bf16) {  // fp32 is for checking: the first candidate will do
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = std::numeric_limits<float>::infinity();
    for (int i = 0; i < count; ++i) {
      if (found[i].state != 0) continue;
      std::vector<float> times;
      for (int turn = 0; turn < 5; ++turn) {
        cudaEventRecord(begin, stream);
        run(chosen, product, &found[i].algorithm, stream);
        cudaEventRecord(end, stream);
        cudaEventSynchronize(end);
        float ms = 0.0f;
        cudaEventElapsedTime(&ms, begin, end);
        times.push_back(ms);
        if (turn == 1 && ms > 1.3f * best) break;  // far behind already
      }
      std::sort(times.begin(), times.end());
      if (times[times.size() / 2] < best && times.size() == 5) {
        best = times[times.size() / 2];
        chosen.algorithm = found[i].algorithm;
      }
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
  }
  // Another process may have chosen meanwhile: then its choice is this one's too.
  const std::string key = key_of(product), mine = to_hex(chosen.algorithm);
  if (!from_hex(choices_.settle(key, mine), chosen.algorithm)) from_hex(mine, chosen.algorithm);
  chosen.chosen = true;
}

void CublasLt::multiply(const MatrixProduct& product, cudaStream_t stream) {
  Plan& ready = plan(product);
  if (!ready.chosen) choose_algorithm(product, stream);
  run(ready, product, &ready.algorithm, stream);
}

}  // namespace tessera
#endif
