// Registrar: what a plugin's registration function fills; and the door, the one exported symbol.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "assay/api.h"
#include "assay/kind.h"
#include "assay/manifest.h"
#include "assay/options.h"

namespace assay {

/// Kept by hand: raised with every incompatible change of the SDK.
#define ASSAY_PLUGIN_API 1

class Model;
class ParallelStrategy;
class MemoryPolicy;
class Precision;
class CompileBackend;
class Optimizer;
class DataSource;
class CommBackend;

/// The contract class of a kind.
template <Kind kind>
struct ContractOf;
template <>
struct ContractOf<Kind::model> {
  using type = Model;
};
template <>
struct ContractOf<Kind::parallel> {
  using type = ParallelStrategy;
};
template <>
struct ContractOf<Kind::memory> {
  using type = MemoryPolicy;
};
template <>
struct ContractOf<Kind::precision> {
  using type = Precision;
};
template <>
struct ContractOf<Kind::compile> {
  using type = CompileBackend;
};
template <>
struct ContractOf<Kind::optim> {
  using type = Optimizer;
};
template <>
struct ContractOf<Kind::data> {
  using type = DataSource;
};
template <>
struct ContractOf<Kind::comm> {
  using type = CommBackend;
};

/// Makes components of one contract; the base lets the registry keep all kinds in one list.
class ASSAY_API FactoryBase {
 public:
  virtual ~FactoryBase();
};

template <class Contract>
class Factory final : public FactoryBase {
 public:
  std::function<std::unique_ptr<Contract>(const OptionValues&)> create;
};

/// One component as the registry keeps it.
struct Registration {
  Kind kind = Kind::model;
  Manifest manifest{};
  std::vector<OptionSpec> options{};
  std::shared_ptr<const FactoryBase> factory{};
  std::string plugin{};  ///< name of the plugin that brought it

  std::string id() const { return std::string(name_of(kind)) + "/" + manifest.name; }
};

/// Called by the loader, once per plugin, before any fork: register only; start no thread, make no
/// tensor, print nothing.
class ASSAY_API Registrar {
 public:
  explicit Registrar(std::string plugin);
  ~Registrar();

  /// Adds a component. T derives from its kind's contract and is constructed from its Options (or
  /// from nothing if it has none). Throws Error for a manifest that breaks a rule.
  template <class T>
  void add(Manifest manifest) {
    using Contract = typename ContractOf<T::kind>::type;
    static_assert(std::is_base_of_v<Contract, T>, "a component derives from its kind's contract");
    static_assert(std::has_virtual_destructor_v<Contract>);
    Registration entry;
    entry.kind = T::kind;
    entry.manifest = std::move(manifest);
    auto factory = std::make_shared<Factory<Contract>>();
    if constexpr (requires { typename T::Options; }) {
      auto table = std::make_shared<OptionTable<typename T::Options>>();
      T::Options::declare(*table);
      entry.options = table->specs();
      factory->create = [table](const OptionValues& values) -> std::unique_ptr<Contract> {
        return std::make_unique<T>(table->read(values));
      };
    } else {
      factory->create = [](const OptionValues& values) -> std::unique_ptr<Contract> {
        for (const auto& [name, value] : values) unknown_option(name, {});
        return std::make_unique<T>();
      };
    }
    entry.factory = std::move(factory);
    take(std::move(entry));
  }

  const std::vector<Registration>& entries() const { return entries_; }

 private:
  void take(Registration entry);

  const std::string plugin_;
  std::vector<Registration> entries_;
};

/// The door: plain data, constant, the only symbol that a plugin exports (`assay_plugin_v1`).
struct PluginDoor {
  uint32_t magic;
  uint32_t struct_size;
  const char* note;  ///< the text of .note.assay
  void (*register_components)(Registrar&);
  void (*shutdown)();  ///< may be null; runs before the worker's main returns
};
inline constexpr uint32_t kPluginMagic = 0x41535359;

}  // namespace assay
