// The one error type of the engine: what happened, under a stable code, and the way out.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace tessera {

class EngineError : public std::runtime_error {
 public:
  // code: stable, snake_case ("missing_tensor"); message: names the file, tensor or field; hint: what to do
  // about it.
  EngineError(std::string code, const std::string& message, std::string hint = "")
      : std::runtime_error(message), code_(std::move(code)), hint_(std::move(hint)) {}
  const std::string& code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  std::string code_;
  std::string hint_;
};

}  // namespace tessera
