// Sections .dynsym and .dynamic of an ELF64 file that was accepted before.
#include "core/conformance/elf_file.h"

#include <elf.h>

#include <cstring>

#include "assay/error.h"
#include "core/base/files.h"

namespace assay::conformance {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes.begin(), bytes.end()) {
    bytes_.push_back('\0');  // ends a text that the file does not end
  }

  template <class T>
  T at(uint64_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) {
      throw Error("the ELF tables of the plugin are damaged");
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::string text(uint64_t offset) const {
    if (offset >= bytes_.size()) throw Error("the ELF tables of the plugin are damaged");
    return bytes_.data() + offset;
  }

 private:
  std::vector<char> bytes_;
};

void take_symbols(const Reader& file, const Elf64_Shdr& table, uint64_t names, ElfFile& result) {
  for (uint64_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = file.at<Elf64_Sym>(table.sh_offset + i * sizeof(Elf64_Sym));
    if (symbol.st_shndx == SHN_UNDEF) continue;
    result.exports.push_back(file.text(names + symbol.st_name));
  }
}

void take_dynamic(const Reader& file, const Elf64_Shdr& table, uint64_t names, ElfFile& result) {
  for (uint64_t i = 0; i < table.sh_size / sizeof(Elf64_Dyn); ++i) {
    const auto entry = file.at<Elf64_Dyn>(table.sh_offset + i * sizeof(Elf64_Dyn));
    if (entry.d_tag == DT_NEEDED) result.needed.push_back(file.text(names + entry.d_un.d_val));
    if (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) result.run_path = true;
    if (entry.d_tag == DT_FLAGS_1) result.stays = (entry.d_un.d_val & DF_1_NODELETE) != 0;
  }
}

}  // namespace

ElfFile read_elf(const std::filesystem::path& path) {
  const Reader file(read_file(path));
  const auto header = file.at<Elf64_Ehdr>(0);
  ElfFile result;
  for (int i = 0; i < header.e_shnum; ++i) {
    const auto section = file.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_DYNAMIC) continue;
    const auto names =
        file.at<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr)).sh_offset;
    if (section.sh_type == SHT_DYNSYM) take_symbols(file, section, names, result);
    if (section.sh_type == SHT_DYNAMIC) take_dynamic(file, section, names, result);
  }
  return result;
}

}  // namespace assay::conformance
