#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "ops/cupti_trace.h"

#if __has_include(<cupti.h>)
#include <cupti.h>

namespace tessera {
namespace {

constexpr size_t kBufferBytes = size_t{4} << 20;
constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                         CUPTI_ACTIVITY_KIND_MEMSET};

// CUPTI's callbacks take no pointer of ours, and come from a thread of its own, also while the program ends:
// what they use is never destroyed.
struct Collected {
  std::mutex mutex;
  std::vector<Activity> activities;
  CUptiResult (*next_record)(std::uint8_t*, size_t, CUpti_Activity**) = nullptr;
};
Collected& collected() {
  static Collected* const all = new Collected;
  return *all;
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *max_records = 0;
}

// "tessera::(anonymous namespace)::rmsnorm_fwd_kernel<…>(…)" as rmsnorm_fwd_kernel. The set holds it for
// good.
const char* readable(const char* symbol) {
  static auto* const names = new std::map<std::string, std::string>;
  std::string& name = (*names)[symbol];
  if (!name.empty()) return name.c_str();
  int status = 0;
  char* demangled = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  name = status == 0 ? demangled : symbol;
  std::free(demangled);
  for (size_t at; (at = name.find("(anonymous namespace)::")) != std::string::npos;) name.erase(at, 23);
  name = name.substr(0, name.find_first_of("<("));
  name = name.substr(name.find_last_of(": ") + 1);
  if (name.empty()) name = symbol;
  return name.c_str();
}

template <typename Record>
void keep(const CUpti_Activity* raw, const char* name, std::vector<Activity>* out) {
  const auto* record = reinterpret_cast<const Record*>(raw);
  if (record->graphId != 0) out->push_back({name, record->start, record->end});
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, size_t, size_t valid) {
  Collected& all = collected();
  const std::lock_guard lock(all.mutex);
  CUpti_Activity* record = nullptr;
  while (all.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || record->kind == CUPTI_ACTIVITY_KIND_KERNEL)
      keep<CUpti_ActivityKernel10>(
          record, readable(reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name), &all.activities);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      keep<CUpti_ActivityMemcpy6>(record, "copy", &all.activities);
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
      keep<CUpti_ActivityMemset4>(record, "fill", &all.activities);
  }
  std::free(buffer);
}

}  // namespace

struct CuptiTrace::Functions {
  CUptiResult (*version)(std::uint32_t*);
  CUptiResult (*register_callbacks)(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
  CUptiResult (*enable)(CUpti_ActivityKind);
  CUptiResult (*disable)(CUpti_ActivityKind);
  CUptiResult (*flush)(std::uint32_t);
  CUptiResult (*next_record)(std::uint8_t*, size_t, CUpti_Activity**);
  CUptiResult (*result_text)(CUptiResult, const char**);
};

CuptiTrace::CuptiTrace(std::unique_ptr<DynamicLibrary> library, std::unique_ptr<Functions> api,
                       std::uint32_t version)
    : library_(std::move(library)), api_(std::move(api)), version_(version) {}

std::unique_ptr<CuptiTrace> CuptiTrace::open(std::string* why) {
  auto library = DynamicLibrary::open({"libcupti.so.13"}, why);
  if (!library) return nullptr;
  auto api = std::make_unique<Functions>();
  library->load(api->version, "cuptiGetVersion");
  library->load(api->register_callbacks, "cuptiActivityRegisterCallbacks");
  library->load(api->enable, "cuptiActivityEnable");
  library->load(api->disable, "cuptiActivityDisable");
  library->load(api->flush, "cuptiActivityFlushAll");
  library->load(api->next_record, "cuptiActivityGetNextRecord");
  library->load(api->result_text, "cuptiGetResultString");
  std::uint32_t version = 0;
  api->version(&version);
  if (version < CUPTI_API_VERSION) {
    *why = library->path() + " is version " + std::to_string(version) + ", " +
           std::to_string(CUPTI_API_VERSION) + " is needed";
    return nullptr;
  }
  collected().next_record = api->next_record;
  CUptiResult status = api->register_callbacks(give_buffer, take_buffer);
  for (const CUpti_ActivityKind kind : kKinds)
    if (status == CUPTI_SUCCESS) status = api->enable(kind);
  if (status != CUPTI_SUCCESS) {
    const char* text = nullptr;
    api->result_text(status, &text);
    *why = library->path() + " refuses to trace: " + (text ? text : std::to_string(status));
    return nullptr;
  }
  return std::unique_ptr<CuptiTrace>(new CuptiTrace(std::move(library), std::move(api), version));
}

CuptiTrace::~CuptiTrace() {
  api_->flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  for (const CUpti_ActivityKind kind : kKinds) api_->disable(kind);
  library_.release();  // a thread of CUPTI's own lives on in it
}

std::vector<Activity> CuptiTrace::take() {
  api_->flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Collected& all = collected();
  std::vector<Activity> taken;
  {
    const std::lock_guard lock(all.mutex);
    taken.swap(all.activities);
  }
  std::sort(taken.begin(), taken.end(),
            [](const Activity& a, const Activity& b) { return a.begin < b.begin; });
  return taken;
}

std::string CuptiTrace::description() const {
  return "cupti " + std::to_string(version_) + " (" + library_->path() + ")";
}

}  // namespace tessera

#else

namespace tessera {

struct CuptiTrace::Functions {};
std::unique_ptr<CuptiTrace> CuptiTrace::open(std::string* why) {
  *why = "this engine was built without CUPTI's headers";
  return nullptr;
}
CuptiTrace::~CuptiTrace() = default;
std::vector<Activity> CuptiTrace::take() { return {}; }
std::string CuptiTrace::description() const { return ""; }

}  // namespace tessera

#endif
