// Shared libraries that the engine can do without: found and opened at run time, each absence a clear state.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace tessera {

class DynamicLibrary {
 public:
  // Opens the first of `names` ("libcublasLt.so.13") found in library_search_path(), then by the system's
  // loader. Null where none can be opened; `why`, if given, then says what was tried.
  static std::unique_ptr<DynamicLibrary> open(const std::vector<std::string>& names,
                                              std::string* why = nullptr);

  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  const std::string& path() const { return path_; }  // as opened
  void* symbol(const char* name) const;              // null where the library has none of that name

  // The symbol as a function pointer; throws EngineError missing_symbol naming library and function.
  template <class Function>
  void load(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(require(name));
  }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* require(const char* name) const;

  void* handle_;
  std::string path_;
};

// $ENGINE_LIB_PATH, $LD_LIBRARY_PATH, /usr/local/cuda/lib64, then site-packages/nvidia/*/lib of the Pythons
// on $PATH, in $VIRTUAL_ENV and in the system's own folders. Only folders that exist.
std::vector<std::string> library_search_path();

}  // namespace tessera
