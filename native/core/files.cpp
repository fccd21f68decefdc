#include "core/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/json.h"

namespace tessera {
namespace {

[[noreturn]] void fail(const fs::path& path, const char* what) {
  const int code = errno;
  if (code == ENOENT) throw EngineError("missing_file", path.string() + ": no such file", "Check the path.");
  const bool full = code == ENOSPC || code == EDQUOT;
  const char* hint = full ? "Free some disk space." : code == EACCES ? "Check the permissions." : "";
  throw EngineError(full ? "disk_full" : "io_error", path.string() + ": " + what + ": " + std::strerror(code),
                    hint);
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

MappedFile::MappedFile(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "cannot open");
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw EngineError("io_error", path.string() + ": not a regular file", "Name a file, not a folder.");
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) {
    void* map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
      ::close(fd);
      fail(path, "cannot map");
    }
    data_ = static_cast<const std::uint8_t*>(map);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), partial_(path_.string() + ".partial") {
  fd_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail(partial_, "cannot create");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = ::write(fd_, next, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(partial_, "cannot write");
    next += done;
    bytes -= static_cast<size_t>(done);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail(partial_, "cannot sync");
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) fail(partial_, "cannot close");
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(path_, "cannot rename into place");
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) fs::create_directories(folder, error);
  if (!error && !fs::is_directory(folder, error)) error = std::make_error_code(std::errc::not_a_directory);
  if (error)
    throw EngineError("io_error", folder.string() + ": " + error.message(),
                      "Check the path and its permissions.");
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void sync_folder(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(folder, "cannot open");
  const int result = ::fsync(fd);
  ::close(fd);
  if (result != 0 && errno != EINVAL) fail(folder, "cannot sync");
}

std::string read_file(const fs::path& path) {
  const MappedFile map(path);
  return {reinterpret_cast<const char*>(map.data()), map.size()};
}

std::string file_checksum(const fs::path& path) {
  const MappedFile map(path);
  return hex(XXH3_64bits(map.data(), map.size()));
}

std::string text_checksum(std::string_view text) { return hex(XXH3_64bits(text.data(), text.size())); }

Json read_json(const fs::path& path) {
  try {
    return Json::parse(read_file(path));
  } catch (const nlohmann::json::parse_error& error) {
    throw EngineError("invalid_json", path.string() + ": " + error.what(),
                      "The file is damaged or cut short.");
  }
}

}  // namespace tessera
