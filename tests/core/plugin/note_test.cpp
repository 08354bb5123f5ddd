// The note reader: what it finds, what it refuses and with which words, and random damage.
#include <random>

#include "tests/core/plugin/fixture.h"

namespace assay {
namespace {

class NoteReader : public PluginFolder {
 protected:
  const std::string good_ = elf_with_note(note_json("lion", {"optim/lion"}));
  std::string refusal(const std::string& bytes) const {
    return refusal_of([&] { find_note(bytes, "x.assay.so"); });
  }
};

TEST_F(NoteReader, FindsTheNote) {
  const Note note = parse_note(find_note(good_, "x"), "x");
  EXPECT_EQ(note.plugin, "lion");
  EXPECT_EQ(note.components, std::vector<std::string>{"optim/lion"});
  EXPECT_EQ(note.torch, host_note().torch);
  EXPECT_EQ(read_note_text(put("x.assay.so", good_), "x"), find_note(good_, "x"));
}

TEST_F(NoteReader, SkipsForeignNotesBeforeItsOwn) {
  // Two notes in one segment: GNU's build id, then ours.
  const std::string foreign = elf_with_note(std::string("id"), "GNU", 3);
  const size_t at = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr);
  std::string bytes = good_;
  bytes.insert(at, foreign.substr(at));
  const uint64_t added = foreign.size() - at;
  for (int i = 0; i < 2; ++i) {  // p_filesz of both segments
    Elf64_Phdr segment;
    char* place = bytes.data() + sizeof(Elf64_Ehdr) + i * sizeof segment;
    std::memcpy(&segment, place, sizeof segment);
    segment.p_filesz += added;
    std::memcpy(place, &segment, sizeof segment);
  }
  EXPECT_EQ(parse_note(find_note(bytes, "x"), "x").plugin, "lion");
}

TEST_F(NoteReader, RefusesWhatIsNoPlugin) {
  EXPECT_EQ(refusal("#!/bin/sh\n"), golden("not_elf.txt"));
  EXPECT_EQ(refusal(""), golden("not_elf.txt"));
  std::string bits32 = good_;
  bits32[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(refusal(bits32), golden("bits32.txt"));
  std::string executable = good_;
  executable[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
  EXPECT_EQ(refusal(executable), golden("no_library.txt"));
  EXPECT_EQ(refusal(elf_with_note("{}", "GNU")), golden("no_note.txt"));
  EXPECT_EQ(refusal(elf_with_note("{}", "assay", 1)), golden("no_note.txt"));
  EXPECT_EQ(refusal(elf_with_note(std::string(70'000, ' '))), golden("note_too_long.txt"));
}

TEST_F(NoteReader, RefusesANoteThatIsNoJsonOrLacksAField) {
  EXPECT_EQ(refusal_of([] { parse_note("no json", "x.assay.so"); }), golden("note_not_json.txt"));
  nlohmann::json note = note_json("lion", {});
  note.erase("torch");
  EXPECT_EQ(refusal_of([&] { parse_note(note.dump(), "x.assay.so"); }),
            golden("note_without_torch.txt"));
  note["torch"] = 2;
  EXPECT_NE(refusal_of([&] { parse_note(note.dump(), "x"); }), "accepted");
}

TEST_F(NoteReader, RefusesAFileCutAtAnyPlace) {
  for (size_t size = 0; size < good_.size(); ++size) {
    EXPECT_NE(refusal(good_.substr(0, size)), "accepted") << "cut at " << size;
  }
  const std::string cut = refusal(good_.substr(0, 200));
  EXPECT_EQ(cut, "x.assay.so: error[P05]: truncated: it has 200 bytes, its headers reach " +
                     std::to_string(good_.size()) + "\n");
}

TEST_F(NoteReader, RefusesAFileThatCannotBeRead) {
  EXPECT_EQ(refusal_of([&] { read_note_text(folder_ / "none.so", "none.so"); }),
            "none.so: error[P04]: not an assay plugin (cannot be read)\n"
            "  hint: build it with assay_add_plugin()\n");
  EXPECT_NE(refusal_of([&] { read_note_text(folder_, "folder"); }), "accepted");
  EXPECT_NE(refusal_of([&] { read_note_text(put("empty.so", ""), "e"); }), "accepted");
}

// Under AddressSanitizer this shows that no damaged offset reads outside of the file.
TEST_F(NoteReader, SurvivesRandomDamage) {
  std::mt19937 random(20240229);
  const size_t headers = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + sizeof(Elf64_Nhdr) + 8;
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good_;
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) {
      bytes[SELFMAG + random() % (headers - SELFMAG)] = static_cast<char>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const std::string exact(bytes.data(), bytes.size());  // no slack behind the end
    accepted += refusal(exact) == "accepted";
  }
  EXPECT_GT(accepted, 0) << "some damage is harmless (padding, unused fields)";
}

TEST_F(NoteReader, SurvivesExtremeOffsets) {
  for (const uint64_t value : {UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63, uint64_t{0}}) {
    for (size_t at = 0; at + 8 <= sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr); at += 8) {
      std::string bytes = good_;
      std::memcpy(bytes.data() + at, &value, sizeof value);
      refusal(bytes);
    }
  }
}

}  // namespace
}  // namespace assay
