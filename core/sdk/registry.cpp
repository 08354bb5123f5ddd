// The registry of this process, and the checks of every registration.
#include "assay/registry.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>

#include "core/base/nearest.h"

namespace assay {
namespace {

std::vector<std::string> ids_of(const std::vector<Registration>& entries) {
  std::vector<std::string> ids;
  for (const Registration& entry : entries) ids.push_back(entry.id());
  return ids;
}

}  // namespace

void Registry::add(const std::vector<Registration>& entries) {
  ASSAY_CHECK(!frozen_, "a plugin was registered after the registry was frozen");
  for (const Registration& entry : entries) {
    if (const Registration* other = find(entry.kind, entry.manifest.name)) {
      throw Error(
          "plugins '" + entry.plugin + "' and '" + other->plugin + "' both define " + entry.id(),
          "rename one component, or take one folder out of ASSAY_PLUGIN_PATH");
    }
    entries_.push_back(entry);
  }
}

const Registration* Registry::find(Kind kind, std::string_view name) const {
  for (const Registration& entry : entries_) {
    if (entry.kind == kind && entry.manifest.name == name) return &entry;
  }
  return nullptr;
}

std::vector<const Registration*> Registry::entries() const {
  std::vector<const Registration*> all;
  for (const Registration& entry : entries_) all.push_back(&entry);
  std::sort(all.begin(), all.end(), [](const Registration* a, const Registration* b) {
    return std::pair(a->kind, a->manifest.name) < std::pair(b->kind, b->manifest.name);
  });
  return all;
}

const Registration& Registry::get(Kind kind, std::string_view name) const {
  if (const Registration* entry = find(kind, name)) return *entry;
  const std::string id = std::string(name_of(kind)) + "/" + std::string(name);
  throw Error("no component " + id + " in the loaded plugins",
              did_you_mean(nearest(id, ids_of(entries_))));
}

void Registry::rethrow_from(const std::string& component) {
  const std::string front = component + ": ";
  try {
    throw;
  } catch (const InvalidRun& e) {
    throw InvalidRun(front + e.what(), e.hint());
  } catch (const InfrastructureError& e) {
    throw InfrastructureError(front + e.what(), e.hint());
  } catch (const Error& e) {
    throw Error(front + e.what(), e.hint());
  } catch (const c10::Error& e) {
    throw Error(front + e.what_without_backtrace());
  } catch (const std::exception& e) {
    throw Error(front + e.what());
  } catch (...) {
    throw Error(front + "threw something that is no std::exception");
  }
}

Registry& registry() {
  static Registry& instance = *std::make_unique<Registry>().release();  // outlives every plugin
  return instance;
}

}  // namespace assay
