// JSON files of the engine: reading with the file's name in every error.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "core/json_fwd.h"

namespace tessera {

// Throws EngineError missing_file | invalid_json, naming the file.
Json read_json(const std::filesystem::path& path);

// The value of object[key]; throws EngineError(code) naming `where` and the key where it is absent or of
// another type.
template <class T>
T require_field(const Json& object, const char* key, const std::string& where, const char* code) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || found->is_null())
    throw EngineError(code, where + ": the field \"" + key + "\" is missing",
                      "Add it, or use an unaltered file.");
  try {
    return found->get<T>();
  } catch (const nlohmann::json::exception&) {
    throw EngineError(code, where + ": the field \"" + key + "\" has the wrong type: " + found->dump());
  }
}

// The same with a default for an absent or null field.
template <class T>
T optional_field(const Json& object, const char* key, T fallback, const std::string& where,
                 const char* code) {
  if (!object.is_object()) return fallback;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? fallback : require_field<T>(object, key, where, code);
}

}  // namespace tessera
