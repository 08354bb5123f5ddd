// The ELF64 note reader, every offset bounded, and the note's JSON.
#include "core/plugin/note.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "assay/registrar.h"  // kPluginMagic
#include "core/base/diagnostic.h"

namespace assay {
namespace {

constexpr char kOwner[] = "assay";

[[noreturn]] void refuse(const char* id, const std::string& place, const std::string& text,
                         const char* hint = nullptr) {
  Diagnostic d;
  d.id = id;
  d.place = place;
  d.text = text;
  if (hint) d.hints = {hint};
  throw DiagnosticError(std::move(d));
}

[[noreturn]] void refuse_file(const std::string& place, const std::string& why) {
  refuse("P04", place, "not an assay plugin (" + why + ")", "build it with assay_add_plugin()");
}

/// A copy of the structure at `offset`, or nothing if it is not inside the bytes.
template <class T>
std::optional<T> at(std::string_view bytes, uint64_t offset) {
  T value;
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

uint64_t end_of(uint64_t offset, uint64_t size) {
  uint64_t end;
  return __builtin_add_overflow(offset, size, &end) ? UINT64_MAX : end;
}

Elf64_Ehdr read_header(std::string_view bytes, const std::string& place) {
  if (bytes.size() < SELFMAG || bytes.substr(0, SELFMAG) != ELFMAG) refuse_file(place, "not ELF");
  const auto header = at<Elf64_Ehdr>(bytes, 0);
  if (bytes.size() > EI_CLASS && bytes[EI_CLASS] != ELFCLASS64) {
    refuse_file(place, "not a 64-bit library");
  }
  if (!header) {
    refuse("P05", place,
           "truncated: it has " + std::to_string(bytes.size()) + " bytes, an ELF header has " +
               std::to_string(sizeof(Elf64_Ehdr)));
  }
  if (header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_type != ET_DYN) {
    refuse_file(place, "not a shared library of this machine");
  }
  return *header;
}

/// Where the file must reach: its tables and every segment. dlopen on a shorter one is SIGBUS.
uint64_t needed_bytes(std::string_view bytes, const Elf64_Ehdr& header) {
  const uint64_t programs = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  uint64_t needed = end_of(header.e_phoff, programs);
  if (header.e_shoff > 0) needed = std::max(needed, end_of(header.e_shoff, sections));
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = at<Elf64_Phdr>(bytes, end_of(header.e_phoff, i * sizeof(Elf64_Phdr)));
    if (!segment) break;
    if (segment->p_type == PT_LOAD) {
      needed = std::max(needed, end_of(segment->p_offset, segment->p_filesz));
    }
  }
  return needed;
}

uint64_t padded(uint32_t size) { return (uint64_t{size} + 3) / 4 * 4; }

/// The content of assay's note among the notes of one segment.
std::optional<std::string_view> find_in_segment(std::string_view notes) {
  for (uint64_t offset = 0; const auto note = at<Elf64_Nhdr>(notes, offset);) {
    const uint64_t name = offset + sizeof(Elf64_Nhdr);
    const uint64_t content = name + padded(note->n_namesz);
    offset = content + padded(note->n_descsz);
    if (content > notes.size() || note->n_descsz > notes.size() - content) return std::nullopt;
    if (note->n_type == kPluginMagic && note->n_namesz == sizeof kOwner &&
        notes.substr(name, sizeof kOwner) == std::string_view(kOwner, sizeof kOwner)) {
      return notes.substr(content, note->n_descsz);
    }
  }
  return std::nullopt;
}

/// The bytes of a file, mapped read-only.
class MappedFile {
 public:
  MappedFile(const std::filesystem::path& file, const std::string& place) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    const bool readable = fd >= 0 && ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    size_ = readable ? static_cast<size_t>(status.st_size) : 0;
    if (size_ > 0) data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd >= 0) ::close(fd);
    if (!readable || data_ == MAP_FAILED) refuse_file(place, "cannot be read");
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (size_ > 0) ::munmap(data_, size_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

std::string text_field(const nlohmann::json& document, const char* name) {
  return document.at(name).get<std::string>();
}

}  // namespace

std::string find_note(std::string_view bytes, const std::string& place) {
  const Elf64_Ehdr header = read_header(bytes, place);
  if (header.e_phentsize != sizeof(Elf64_Phdr)) refuse_file(place, "damaged ELF header");
  const uint64_t needed = needed_bytes(bytes, header);
  if (needed > bytes.size()) {
    refuse("P05", place,
           "truncated: it has " + std::to_string(bytes.size()) + " bytes, its headers reach " +
               std::to_string(needed));
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    const auto segment = at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_NOTE) continue;
    if (end_of(segment->p_offset, segment->p_filesz) > bytes.size()) continue;
    const auto content = find_in_segment(bytes.substr(segment->p_offset, segment->p_filesz));
    if (!content) continue;
    if (content->size() > kMostNoteBytes) refuse_file(place, "its note is over 64 KiB");
    return std::string(content->substr(0, content->find('\0')));
  }
  refuse_file(place, "no .note.assay");
}

std::string read_note_text(const std::filesystem::path& file, const std::string& place) {
  const MappedFile mapped(file, place);
  return find_note(mapped.bytes(), place);
}

Note parse_note(const std::string& text, const std::string& place) {
  Note note;
  note.text = text;
  const nlohmann::json d = nlohmann::json::parse(text, nullptr, false);
  if (!d.is_object()) refuse_file(place, "its note cannot be read: it is no JSON");
  try {
    for (const auto& [name, field] : kEnvironmentFields) note.*field = text_field(d, name);
    note.plugin = text_field(d, "plugin");
    note.version = text_field(d, "version");
    note.components = d.at("components").get<std::vector<std::string>>();
    note.op_namespaces = d.at("op_namespaces").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& e) {
    const std::string what = e.what();  // "[json.exception.type_error.302] type must be ..."
    const size_t end = what.find("] ");
    refuse_file(place, "its note cannot be read: " +
                           (end == std::string::npos ? what : what.substr(end + 2)));
  }
  return note;
}

}  // namespace assay
