// What a program tells NVTX, written to the file $NVTX_RECORD: a line for each push, "+ THREAD NAME", and
// each pop,
// "- THREAD". Loaded into it by NVTX itself: NVTX_INJECTION64_PATH names this library (NVTX's own interface
// for tools).
#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace {

std::mutex lock;
std::FILE* record = nullptr;

int write_line(char sign, const char* name) {
  const std::lock_guard<std::mutex> guard(lock);
  static std::map<long, int> depth;
  const long thread = syscall(SYS_gettid);
  std::fprintf(record, "%c %ld%s%s\n", sign, thread, *name ? " " : "", name);
  std::fflush(record);
  return sign == '+' ? depth[thread]++ : --depth[thread];
}

int push(const char* name) { return write_line('+', name); }
int pop() { return write_line('-', ""); }

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const char* path = std::getenv("NVTX_RECORD");
  record = path ? std::fopen(path, "w") : nullptr;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned count = 0;
  if (!record || !callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &count) ||
      count <= NVTX_CBID_CORE_RangePop)
    return 0;
  *table[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *table[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}
