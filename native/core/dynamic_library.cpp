#include "core/dynamic_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/error.h"

namespace tessera {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> split_path(const char* variable) {
  std::vector<std::string> parts;
  const char* value = std::getenv(variable);
  std::istringstream in(value ? value : "");
  for (std::string part; std::getline(in, part, ':');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.is_directory(ignored)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// <prefix>/lib/python3.*/{site,dist}-packages/nvidia/*/lib: where pip puts CUDA's libraries.
void add_pip_folders(std::vector<std::string>& folders, const fs::path& prefix) {
  for (const fs::path& python : subfolders(prefix / "lib")) {
    if (python.filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& package : subfolders(python / packages / "nvidia"))
        folders.push_back(package / "lib");
    }
  }
}

}  // namespace

std::vector<std::string> library_search_path() {
  std::vector<std::string> folders = split_path("ENGINE_LIB_PATH");
  for (const std::string& folder : split_path("LD_LIBRARY_PATH")) folders.push_back(folder);
  folders.push_back("/usr/local/cuda/lib64");
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_pip_folders(folders, environment);
  std::error_code ignored;
  for (const std::string& bin : split_path("PATH")) {
    const fs::path python = fs::path(bin) / "python3";
    if (fs::exists(python, ignored)) add_pip_folders(folders, fs::path(bin).parent_path());
  }
  add_pip_folders(folders, "/usr/local");
  add_pip_folders(folders, "/usr");
  if (const char* home = std::getenv("HOME")) add_pip_folders(folders, fs::path(home) / ".local");

  std::vector<std::string> unique;
  for (const std::string& folder : folders) {
    if (std::find(unique.begin(), unique.end(), folder) == unique.end() &&
        fs::is_directory(folder, ignored)) {
      unique.push_back(folder);
    }
  }
  return unique;
}

std::unique_ptr<DynamicLibrary> DynamicLibrary::open(const std::vector<std::string>& names,
                                                     std::string* why) {
  const std::vector<std::string> folders = library_search_path();
  std::string tried;
  const auto try_open = [&](const std::string& path) -> std::unique_ptr<DynamicLibrary> {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return std::unique_ptr<DynamicLibrary>(new DynamicLibrary(handle, path));
    }
    const char* error = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(error ? error : path);
    return nullptr;
  };
  for (const std::string& name : names) {
    for (const std::string& folder : folders) {
      const fs::path path = fs::path(folder) / name;
      std::error_code ignored;
      if (!fs::exists(path, ignored)) continue;
      if (auto library = try_open(path)) return library;
    }
    if (auto library = try_open(name)) return library;
  }
  if (why) *why = tried;
  return nullptr;
}

DynamicLibrary::~DynamicLibrary() { dlclose(handle_); }

void* DynamicLibrary::symbol(const char* name) const { return dlsym(handle_, name); }

void* DynamicLibrary::require(const char* name) const {
  if (void* found = symbol(name)) return found;
  throw EngineError("missing_symbol", path_ + " has no function " + name,
                    "Install a version of this library that belongs to CUDA 12 or 13.");
}

}  // namespace tessera
