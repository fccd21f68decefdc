// Files: memory maps, writes that are whole or absent, checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

namespace fs = std::filesystem;

// A read-only map of a whole file. Throws EngineError missing_file | io_error, naming it.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const std::uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const std::uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Writes to "<path>.partial"; commit() syncs it and renames it into place. Uncommitted, it is removed.
class AtomicFile {
 public:
  explicit AtomicFile(fs::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  void write(const void* data, size_t bytes);
  void commit();

 private:
  fs::path path_, partial_;
  int fd_ = -1;
};

void write_file(const fs::path& path, std::string_view text);  // through AtomicFile
void make_folder(const fs::path& folder);  // and those above it, where it is not there; EngineError io_error
void sync_folder(const fs::path& folder);  // makes the names in it durable
std::string read_file(const fs::path& path);
std::string file_checksum(const fs::path& path);  // XXH3, 64 bits, 16 hex digits
std::string text_checksum(std::string_view text);

}  // namespace tessera
