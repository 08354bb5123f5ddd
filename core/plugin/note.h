// Note: what a plugin file says of itself in its ELF note, read without running a byte of it.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

/// Fields of plugin-boundary.md 3; every value as text.
struct Note {
  std::string assay_api, sdk_hash, torch, cxx11_abi, glibcxx_debug, stdlib, sanitizer, cxx_std, isa,
      cuda, nccl, compiler, build;
  std::string plugin, version;
  std::vector<std::string> components;  ///< "optim/lion"
  std::vector<std::string> op_namespaces;
  std::string text;  ///< the JSON text itself
};

/// The fields that describe a build, in the order in which differences are listed.
inline constexpr std::array<std::pair<const char*, std::string Note::*>, 13> kEnvironmentFields{{
    {"assay_api", &Note::assay_api},
    {"torch", &Note::torch},
    {"sdk_hash", &Note::sdk_hash},
    {"cxx11_abi", &Note::cxx11_abi},
    {"glibcxx_debug", &Note::glibcxx_debug},
    {"stdlib", &Note::stdlib},
    {"sanitizer", &Note::sanitizer},
    {"cxx_std", &Note::cxx_std},
    {"isa", &Note::isa},
    {"cuda", &Note::cuda},
    {"nccl", &Note::nccl},
    {"compiler", &Note::compiler},
    {"build", &Note::build},
}};

inline constexpr size_t kMostNoteBytes = 64 * 1024;

/// The note's JSON text. Throws DiagnosticError with `place` as its place: P04 for a file that is
/// no 64-bit shared library or has no note, P05 for a truncated one.
std::string read_note_text(const std::filesystem::path& file, const std::string& place);

/// The same over bytes in memory; never reads outside of them.
std::string find_note(std::string_view file_bytes, const std::string& place);

/// Throws DiagnosticError P04 when the text is not JSON or lacks a field.
Note parse_note(const std::string& text, const std::string& place);

/// The environment that this build of assay has, in the same fields.
const Note& host_note();

}  // namespace assay
