// Opening of plugins: note, handshake, dlopen for good, door, registration.
#define BOOST_DLL_USE_STD_FS
#include "core/sdk/loader.h"

#include <ATen/Version.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <memory>
#include <set>

#include "assay/registry.h"
#include "core/base/diagnostic.h"
#include "core/base/files.h"
#include "core/plugin/handshake.h"

namespace assay {
namespace {

namespace dll = boost::dll;

struct OpenPlugin {
  LoadedPlugin plugin;
  dev_t device = 0;
  ino_t inode = 0;
  dll::shared_library library;
  const PluginDoor* door = nullptr;
};

/// Never destroyed: what a plugin made may live until the process ends.
std::vector<std::unique_ptr<OpenPlugin>>& open_plugins() {
  static auto& list = *std::make_unique<std::vector<std::unique_ptr<OpenPlugin>>>().release();
  return list;
}

[[noreturn]] void refuse(const char* id, const std::string& place, const std::string& text,
                         const std::string& hint = {}) {
  Diagnostic d;
  d.id = id;
  d.place = place;
  d.text = text;
  if (!hint.empty()) d.hints = {hint};
  throw DiagnosticError(std::move(d));
}

/// The dynamic linker's own words out of Boost.DLL's message, which ends with a stray errno text.
std::string linker_words(std::string text, const std::string& file) {
  const std::string lead = "dlerror system message: ";
  if (const size_t at = text.find(lead); at != std::string::npos) {
    text = text.substr(at + lead.size());
    text = text.substr(0, text.rfind("): "));
  }
  return text.rfind(file + ": ", 0) == 0 ? text.substr(file.size() + 2) : text;
}

/// This build's LibTorch against the one that is really loaded; asked once.
void check_libtorch() {
  static const std::string config = at::show_config();
  const std::string torch = host_note().torch;
  const std::string release = torch.substr(0, torch.find('+'));
  if (config.find("TORCH_VERSION=" + release + ",") == std::string::npos &&
      config.find("TORCH_VERSION=" + release + "\n") == std::string::npos) {
    throw Error("the LibTorch that was loaded is not torch " + torch,
                "set ASSAY_LIBTORCH to the pinned wheel, and LD_LIBRARY_PATH to nothing");
  }
}

void check_namespaces(const Note& note, const std::string& place) {
  for (const auto& other : open_plugins()) {
    for (const std::string& name : other->plugin.note.op_namespaces) {
      const auto& own = note.op_namespaces;
      if (std::find(own.begin(), own.end(), name) == own.end()) continue;
      refuse("P09", place,
             "plugins '" + note.plugin + "' and '" + other->plugin.note.plugin +
                 "' both own operator namespace '" + name + "'",
             "rename one");
    }
  }
}

dll::shared_library open_library(const std::filesystem::path& file, const Note& note) {
  constexpr auto mode =
      static_cast<dll::load_mode::type>(int{dll::load_mode::rtld_now} | RTLD_NODELETE);
  try {
    return dll::shared_library(file, mode);
  } catch (const std::exception& e) {
    refuse("P06", file.string(),
           "plugin '" + note.plugin + "' does not load: " + linker_words(e.what(), file.string()));
  }
}

const PluginDoor& find_door(const dll::shared_library& library, const Note& note,
                            const std::string& place) {
  const std::string plugin = "plugin '" + note.plugin + "' ";
  if (!library.has("assay_plugin_v1")) {
    refuse("P06", place, plugin + "does not load: it exports no assay_plugin_v1",
           "build it with assay_add_plugin()");
  }
  const auto& door = library.get<const PluginDoor>("assay_plugin_v1");
  if (door.magic != kPluginMagic || door.struct_size != sizeof(PluginDoor)) {
    refuse("P06", place,
           plugin + "does not load: its descriptor does not have this worker's layout",
           "rebuild it");
  }
  if (door.note != note.text) {
    refuse("P06", place, plugin + "does not load: the file changed while it was opened");
  }
  return door;
}

/// Runs the plugin's registration; whatever it throws becomes P07.
void run_registration(const PluginDoor& door, Registrar& registrar, const Note& note,
                      const std::string& place) {
  const std::string front = "plugin '" + note.plugin + "' threw while registering: ";
  try {
    door.register_components(registrar);
  } catch (const Error& e) {
    refuse("P07", place, front + e.what(), e.hint());
  } catch (const c10::Error& e) {
    refuse("P07", place, front + e.what_without_backtrace());
  } catch (const std::exception& e) {
    refuse("P07", place, front + e.what());
  } catch (...) {
    refuse("P07", place, front + "something that is no std::exception");
  }
}

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "nothing" : text;
}

void compare_components(const Registrar& registrar, const Note& note, const std::string& place) {
  std::set<std::string> registered;
  for (const Registration& entry : registrar.entries()) registered.insert(entry.id());
  const std::set<std::string> named(note.components.begin(), note.components.end());
  if (registered == named) return;
  refuse("P08", place,
         "plugin '" + note.plugin + "' registers " + joined(registered) + ", but its note names " +
             joined(named),
         "rebuild it");
}

std::string stamp_beside(const std::filesystem::path& file) {
  std::filesystem::path stamp = file;
  stamp.replace_extension(".json");  // lion.assay.so -> lion.assay.json
  return std::filesystem::exists(stamp) ? read_file(stamp) : "";
}

OpenPlugin* find_open(const struct stat& status) {
  for (const auto& open : open_plugins()) {
    if (open->device == status.st_dev && open->inode == status.st_ino) return open.get();
  }
  return nullptr;
}

}  // namespace

const LoadedPlugin& load_plugin(const std::filesystem::path& file) {
  const std::string place = file.string();
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) refuse("P04", place, "there is no such file");
  if (const OpenPlugin* open = find_open(status)) return open->plugin;

  auto open = std::make_unique<OpenPlugin>();
  open->device = status.st_dev;
  open->inode = status.st_ino;
  LoadedPlugin& plugin = open->plugin;
  plugin.file = file;
  plugin.note = parse_note(read_note_text(file, place), place);
  const Verdict verdict = compare_notes(plugin.note, host_note(), place);
  if (verdict.refusal) throw DiagnosticError(*verdict.refusal);
  plugin.warnings = verdict.warnings;
  check_namespaces(plugin.note, place);
  check_libtorch();

  open->library = open_library(std::filesystem::absolute(file), plugin.note);
  open->door = &find_door(open->library, plugin.note, place);
  Registrar registrar(plugin.note.plugin);
  run_registration(*open->door, registrar, plugin.note, place);
  compare_components(registrar, plugin.note, place);
  registry().add(registrar.entries());
  plugin.sha256 = sha256_file(file);
  plugin.stamp = stamp_beside(file);
  open_plugins().push_back(std::move(open));
  return plugin;
}

void load_plugins(const std::vector<std::filesystem::path>& files) {
  std::vector<std::filesystem::path> ordered = files;
  std::stable_partition(ordered.begin(), ordered.end(), [](const std::filesystem::path& file) {
    return parse_note(read_note_text(file, file.string()), file.string()).cuda != "none";
  });
  for (const std::filesystem::path& file : ordered) load_plugin(file);
  registry().freeze();
}

std::vector<const LoadedPlugin*> loaded_plugins() {
  std::vector<const LoadedPlugin*> list;
  for (const auto& open : open_plugins()) list.push_back(&open->plugin);
  return list;
}

void shutdown_plugins() {
  auto& list = open_plugins();
  for (auto it = list.rbegin(); it != list.rend(); ++it) {
    if ((*it)->door->shutdown) (*it)->door->shutdown();
  }
}

}  // namespace assay
