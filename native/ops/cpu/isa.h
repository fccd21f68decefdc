// Every *_cpu.cpp file is compiled twice, for baseline x86-64 and for AVX2 + FMA, each time inside its own
// namespace (tessera::baseline, tessera::avx2), so that the linker never merges code of one into the other.
// Such files must not instantiate inline functions of other namespaces that the compiler may emit out of line
// (std containers, std::function): their copies would be shared. tests/native/check_isa_symbols.cmake
// verifies this.
#pragma once

#ifndef TESSERA_ISA
#define TESSERA_ISA baseline
#endif

// Emits an operation for float, the backend's type, and in the baseline for double, the tests' reference.
#ifdef __AVX2__
#define TESSERA_INSTANTIATE(function) template decltype(function<float>) function<float>
#else
#define TESSERA_INSTANTIATE(function)                 \
  template decltype(function<float>) function<float>; \
  template decltype(function<double>) function<double>
#endif
