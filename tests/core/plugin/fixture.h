// Plugin files made of a few hundred bytes: an ELF header, a segment, a note; nothing is compiled.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/registrar.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/plugin/note.h"

namespace assay {

/// The host's own environment with the fields of a plugin.
inline nlohmann::json note_json(const std::string& plugin,
                                const std::vector<std::string>& components,
                                const std::string& version = "1.0.0") {
  nlohmann::json note = nlohmann::json::parse(host_note().text);
  note["cuda"] = note["nccl"] = "none";
  note["plugin"] = plugin;
  note["version"] = version;
  note["components"] = components;
  note["op_namespaces"] = nlohmann::json::array();
  return note;
}

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// header | two program headers | note; the load segment covers all of it.
inline std::string elf_with_note(const std::string& content, const std::string& owner = "assay",
                                 uint32_t type = kPluginMagic) {
  std::string note;
  append(note, Elf64_Nhdr{static_cast<uint32_t>(owner.size() + 1),
                          static_cast<uint32_t>(content.size() + 1), type});
  note += owner + '\0';
  note.resize((note.size() + 3) / 4 * 4);
  note += content + '\0';
  note.resize((note.size() + 3) / 4 * 4);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  const uint64_t at = sizeof header + 2 * sizeof(Elf64_Phdr);
  Elf64_Phdr load{}, notes{};
  load.p_type = PT_LOAD;
  load.p_filesz = at + note.size();
  notes.p_type = PT_NOTE;
  notes.p_offset = at;
  notes.p_filesz = note.size();
  std::string bytes;
  append(bytes, header);
  append(bytes, load);
  append(bytes, notes);
  return bytes + note;
}

inline std::string elf_with_note(const nlohmann::json& note) { return elf_with_note(note.dump()); }

/// The rendered refusal of a call, or "accepted".
template <class Call>
std::string refusal_of(Call call) {
  try {
    call();
  } catch (const DiagnosticError& e) {
    return render(e.diagnostics());
  } catch (const Error& e) {
    return std::string(e.what()) + "\n" + (e.hint().empty() ? "" : "  hint: " + e.hint() + "\n");
  }
  return "accepted";
}

inline std::string golden(const std::string& name) {
  return read_file(std::filesystem::path(ASSAY_TEST_DATA) / "plugins" / name);
}

/// A folder of its own, and a private cache.
class PluginFolder : public testing::Test {
 protected:
  PluginFolder()
      : folder_(std::filesystem::canonical(testing::TempDir()) /
                ("assay_plugin_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "cache");
    setenv("ASSAY_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  }
  ~PluginFolder() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path put(const std::string& file, const std::string& bytes) const {
    std::filesystem::create_directories((folder_ / file).parent_path());
    write_file_atomically(folder_ / file, bytes);
    return folder_ / file;
  }
  /// The text without this run's folder.
  std::string without_folder(std::string text) const {
    const std::string front = folder_.string() + "/";
    for (size_t at = 0; (at = text.find(front, at)) != std::string::npos;) {
      text.erase(at, front.size());
    }
    return text;
  }

  const std::filesystem::path folder_;
};

}  // namespace assay
