// A study whose cell has true ids, a data file and a plugin file, as a plan would have stored it.
#pragma once

#include <fstream>

#include "core/grid/identity.h"
#include "core/host/replay.h"
#include "core/host/study.h"
#include "tests/core/host/harness.h"
#include "tests/core/plugin/fixture.h"

namespace assay::host {

class ReplayStudy : public FakeStudy {
 public:
  /// `fake` tells the worker how to behave.
  explicit ReplayStudy(const nlohmann::json& fake = nlohmann::json::object()) : FakeStudy({}) {
    setenv("ASSAY_CACHE_DIR", (folder() / ".cache").c_str(), 1);
    write(data(), "some text");
    write(plugin(), elf_with_note(note_json("lion", {"optim/lion"})));
    store_plugin(store(), plugin());
    options().study_id = add("fake-study", fake);
  }

  std::filesystem::path data() const { return folder() / "text.txt"; }
  std::filesystem::path plugin() const { return folder() / "lion.assay.so"; }
  static void write(const std::filesystem::path& file, const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
  }
  /// Another build of the plugin in the same place.
  void rebuild_plugin() {
    write(plugin(), elf_with_note(note_json("lion", {"optim/lion"}, "2.0.0")));
  }

  Installed installed() const {
    const grid::Binaries binaries{.libassay = "lib-1", .libtorch = "2.11.0", .worker = "worker-1"};
    return {.binaries = binaries, .env = this_env(grid::installed_binaries().libtorch)};
  }
  Replay plan(int64_t run_id = 1) const {
    return plan_replay(store::Reader(database()), run_id, installed());
  }
  /// Runs a replay of run 1 to its end; its run_id.
  int64_t replay() {
    const QueuedReplay queued = queue_replay(store(), plan(), installed());
    options().study_id = queued.study_id;
    options().runs = {queued.run_id};
    run();
    return queued.run_id;
  }

 private:
  int64_t add(const std::string& name, const nlohmann::json& fake) {
    nlohmann::json config = {{"data", {{"path", data().string()}}},
                             {"fake", fake},
                             {"mesh", {{"dp_replicate", 1}}},
                             {"model", {{"seq_len", 8}}},
                             {"optim", {{"name", "lion"}}},
                             {"seed", 3},
                             {"train", {{"steps", kSteps}, {"global_batch", 2}}}};
    const nlohmann::json binaries = {{"libassay", "lib-1"},
                                     {"libtorch", "2.11.0"},
                                     {"plugins", {{"lion", sha256_file(plugin())}}},
                                     {"worker", "worker-1"}};
    nlohmann::json hashed = config;
    hashed["data"]["path"] = sha256_file(data());
    nlohmann::json recipe = hashed;
    recipe.erase("seed");
    const grid::Ids ids =
        grid::ids_of(binaries.dump(), hashed.dump(), recipe.dump(), std::string(64, 'd'));
    return store().add_study({.name = name,
                              .yaml_sha256 = std::string(64, '6'),
                              .resolved_json = R"({"execution":{"timed":false,"devices":2}})",
                              .nuisance = {"seed"},
                              .cells = {{.cell_id = ids.cell_id,
                                         .recipe_id = ids.recipe_id,
                                         .config_id = ids.config_id,
                                         .config_json = config.dump(),
                                         .binaries = binaries,
                                         .data_fingerprint = std::string(64, 'd'),
                                         .slug = "lion"}}});
  }
};

}  // namespace assay::host
