// The environment fields of .note.assay, from the macros of whoever includes this: JSON text made
// by the preprocessor. Included by the generated note of each plugin and by the host's.
#pragma once

#include <string>             // the macros of the standard library
#include "assay/registrar.h"  // ASSAY_PLUGIN_API

#define ASSAY_TEXT_(x) #x
#define ASSAY_TEXT(x) ASSAY_TEXT_(x)

#ifdef _GLIBCXX_DEBUG
#define ASSAY_NOTE_GLIBCXX_DEBUG "1"
#else
#define ASSAY_NOTE_GLIBCXX_DEBUG "0"
#endif

#if defined(_LIBCPP_VERSION)
#define ASSAY_NOTE_STDLIB "libc++"
#else
#define ASSAY_NOTE_STDLIB "libstdc++"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define ASSAY_NOTE_SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define ASSAY_NOTE_SANITIZER "thread"
#else
#define ASSAY_NOTE_SANITIZER "none"
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define ASSAY_NOTE_ISA "x86-64-v4"
#elif defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__)
#define ASSAY_NOTE_ISA "x86-64-v3"
#elif defined(__x86_64__)
#define ASSAY_NOTE_ISA "x86-64"
#else
#define ASSAY_NOTE_ISA "other"
#endif

#if defined(__clang__)
#define ASSAY_NOTE_COMPILER "clang " ASSAY_TEXT(__clang_major__) "." ASSAY_TEXT(__clang_minor__)
#else
#define ASSAY_NOTE_COMPILER "gcc " ASSAY_TEXT(__GNUC__) "." ASSAY_TEXT(__GNUC_MINOR__)
#endif

#ifdef NDEBUG
#define ASSAY_NOTE_BUILD "release"
#else
#define ASSAY_NOTE_BUILD "debug"
#endif

#ifdef CUDA_VERSION
#define ASSAY_NOTE_CUDA ASSAY_TEXT(CUDA_VERSION)
#else
#define ASSAY_NOTE_CUDA "none"
#endif
#ifdef NCCL_VERSION_CODE
#define ASSAY_NOTE_NCCL ASSAY_TEXT(NCCL_VERSION_CODE)
#else
#define ASSAY_NOTE_NCCL "none"
#endif

#define ASSAY_NOTE_FIELD(name, value) "\"" name "\":\"" value "\","

/// Without the enclosing braces; ends with a comma.
#define ASSAY_NOTE_ENVIRONMENT(sdk_hash, torch, cuda, nccl)         \
  ASSAY_NOTE_FIELD("assay_api", ASSAY_TEXT(ASSAY_PLUGIN_API))       \
  ASSAY_NOTE_FIELD("sdk_hash", sdk_hash)                            \
  ASSAY_NOTE_FIELD("torch", torch)                                  \
  ASSAY_NOTE_FIELD("cxx11_abi", ASSAY_TEXT(_GLIBCXX_USE_CXX11_ABI)) \
  ASSAY_NOTE_FIELD("glibcxx_debug", ASSAY_NOTE_GLIBCXX_DEBUG)       \
  ASSAY_NOTE_FIELD("stdlib", ASSAY_NOTE_STDLIB)                     \
  ASSAY_NOTE_FIELD("sanitizer", ASSAY_NOTE_SANITIZER)               \
  ASSAY_NOTE_FIELD("cxx_std", ASSAY_TEXT(__cplusplus))              \
  ASSAY_NOTE_FIELD("isa", ASSAY_NOTE_ISA)                           \
  ASSAY_NOTE_FIELD("cuda", cuda)                                    \
  ASSAY_NOTE_FIELD("nccl", nccl)                                    \
  ASSAY_NOTE_FIELD("compiler", ASSAY_NOTE_COMPILER)                 \
  ASSAY_NOTE_FIELD("build", ASSAY_NOTE_BUILD)
