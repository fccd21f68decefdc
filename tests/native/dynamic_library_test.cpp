#include "core/dynamic_library.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera {
namespace {

TEST(DynamicLibrary, OpensTheFirstNameThatExists) {
  const auto library = DynamicLibrary::open({"libnothing-of-this-name.so.1", "libm.so.6"});
  ASSERT_NE(library, nullptr);
  double (*cosine)(double) = nullptr;
  library->load(cosine, "cos");
  EXPECT_DOUBLE_EQ(cosine(0.0), 1.0);
}

TEST(DynamicLibrary, SaysWhatWasTriedWhenNoneOpens) {
  std::string why;
  EXPECT_EQ(DynamicLibrary::open({"libnothing-of-this-name.so.1"}, &why), nullptr);
  EXPECT_NE(why.find("libnothing-of-this-name.so.1"), std::string::npos);
}

TEST(DynamicLibrary, NamesTheMissingFunction) {
  const auto library = DynamicLibrary::open({"libm.so.6"});
  ASSERT_NE(library, nullptr);
  void (*missing)() = nullptr;
  try {
    library->load(missing, "no_such_function");
    FAIL() << "a missing function was accepted";
  } catch (const EngineError& error) {
    EXPECT_EQ(error.code(), "missing_symbol");
    EXPECT_NE(std::string(error.what()).find("no_such_function"), std::string::npos);
  }
}

TEST(DynamicLibrary, SearchesTheNamedFolderFirst) {
  setenv("ENGINE_LIB_PATH", "/nonexistent:/tmp", 1);
  EXPECT_EQ(library_search_path().front(), "/tmp");
  unsetenv("ENGINE_LIB_PATH");
}

}  // namespace
}  // namespace tessera
