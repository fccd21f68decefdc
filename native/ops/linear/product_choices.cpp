#include "ops/linear/product_choices.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tessera {
namespace fs = std::filesystem;
namespace {

// Other processes wait while this exists; the system lets go of it when a process ends.
class FileLock {
 public:
  explicit FileLock(const std::string& path)
      : handle_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (handle_ >= 0) ::flock(handle_, LOCK_EX);
  }
  ~FileLock() {
    if (handle_ >= 0) ::close(handle_);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int handle_;
};

}  // namespace

void ProductChoices::open(const std::string& file) {
  file_ = file;
  choices_.clear();
  read();
}

std::string ProductChoices::find(const std::string& product) const {
  const auto found = choices_.find(product);
  return found == choices_.end() ? "" : found->second;
}

std::string ProductChoices::settle(const std::string& product, const std::string& algorithm) {
  std::error_code failed;
  fs::create_directories(fs::path(file_).parent_path(), failed);
  const FileLock lock(file_ + ".lock");
  read();
  const auto [held, is_new] = choices_.emplace(product, algorithm);
  if (is_new) write();
  return held->second;
}

void ProductChoices::read() {
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos && tab + 1 < line.size())
      choices_[line.substr(0, tab)] = line.substr(tab + 1);
  }
}

void ProductChoices::write() const {
  const std::string temporary = file_ + ".new";
  {
    std::ofstream out(temporary);
    for (const auto& [product, algorithm] : choices_) out << product << '\t' << algorithm << '\n';
  }
  std::error_code failed;
  fs::rename(temporary, file_, failed);
}

}  // namespace tessera
