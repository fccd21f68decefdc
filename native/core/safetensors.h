// safetensors: 8 bytes header length (LE), a JSON header, then raw little-endian data.
// A model folder is one file or several that model.safetensors.index.json names.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/files.h"

namespace tessera {

struct TensorInfo {
  std::string dtype;  // as the file spells it; types the engine does not compute with are carried through
  std::vector<i64> shape;
  size_t begin = 0, end = 0;  // bytes, from the start of the data part
  i64 count() const;
};
std::string shape_text(const std::vector<i64>& shape);  // "[4, 64]"

// One mapped file. The header is checked in full before anything is handed out: its length against the file's
// size, every range inside the data without overlap, every size equal to dtype x shape. Throws EngineError
// missing_file | damaged_safetensors, naming file and tensor.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const fs::path& path);
  const fs::path& path() const { return path_; }
  const std::map<std::string, TensorInfo>& tensors() const { return tensors_; }
  bool contains(const std::string& name) const { return tensors_.count(name) != 0; }
  const TensorInfo& info(const std::string& name) const;  // throws missing_tensor
  const void* data(const std::string& name) const { return data_ + info(name).begin; }
  // A view of a tensor that must have this dtype, aligned to its element: the format allows any offset, and a
  // tensor at an odd one is copied once. Valid as long as the file; not for threads at once. Throws
  // wrong_dtype.
  const void* typed(const std::string& name, DType type) const;
  std::vector<float> floats(const std::string& name) const;  // converted from F32, BF16 or F16
  std::string metadata() const { return metadata_; }         // the __metadata__ object as JSON text, or ""

 private:
  void parse_header();
  [[noreturn]] void refuse(const std::string& why) const;

  fs::path path_;
  std::shared_ptr<MappedFile> map_;
  const std::uint8_t* data_ = nullptr;
  size_t data_bytes_ = 0;
  std::map<std::string, TensorInfo> tensors_;
  mutable std::map<std::string, std::shared_ptr<std::uint64_t[]>> aligned_;
  std::string metadata_;
};

// The tensors of a model folder over all its shards. Index and shards are checked against each other both
// ways. Throws EngineError missing_file | missing_shard | missing_tensor | damaged_safetensors, listing
// names.
class SafetensorsFolder {
 public:
  explicit SafetensorsFolder(const fs::path& folder);
  const std::vector<SafetensorsFile>& files() const { return files_; }
  bool sharded() const { return sharded_; }
  std::vector<std::string> names() const;
  const SafetensorsFile* find(const std::string& name) const;     // null where no shard has it
  const SafetensorsFile& file_of(const std::string& name) const;  // throws missing_tensor

 private:
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> where_;
  bool sharded_ = false;
};

// What a writer is to store: data is asked for when its turn comes, so that a model need not be held twice.
struct TensorSource {
  std::string name;
  std::string dtype;
  std::vector<i64> shape;
  std::function<void(const std::function<void(const void*, size_t)>& write)> produce;
};
// Writes atomically. Throws io_error; internal_error where a source produces another size than it declared.
void write_safetensors(const fs::path& path, const std::vector<TensorSource>& tensors,
                       const std::string& metadata);

TensorSource tensor_source(std::string name, DType type, std::vector<i64> shape, const void* data);

}  // namespace tessera
