// Reads a resolved configuration: components through the registry, host keys by hand.
#include "core/train/recipe.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "assay/registry.h"
#include "core/base/units.h"

namespace assay::train {
namespace {

using nlohmann::json;

// The resolved configuration holds plain JSON; the declared type decides what a value becomes.
OptionValue value_of(const OptionSpec& spec, const json& value) {
  switch (spec.type) {
    case OptionType::boolean:
      return value.get<bool>();
    case OptionType::integer:
    case OptionType::bytes:
    case OptionType::duration:
    case OptionType::count:
      return value.get<int64_t>();
    case OptionType::real:
      return value.get<double>();
    case OptionType::text:
    case OptionType::choice:
    case OptionType::path:
      return value.get<std::string>();
    case OptionType::list:
      return value.get<std::vector<std::string>>();
  }
  throw Error("option '" + spec.name + "' has an unknown type");
}

const OptionSpec* find_option(const Registration& entry, const std::string& name) {
  for (const OptionSpec& spec : entry.options) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

template <class Contract>
std::unique_ptr<Contract> make(const json& component) {
  const std::string name = component.at("name");
  const Registration* entry = registry().find(Contract::kind, name);
  OptionValues values;
  for (const auto& [key, value] : component.items()) {
    const bool of_the_host = key == "name" || (Contract::kind == Kind::optim && key == "lr");
    if (of_the_host || entry == nullptr) continue;
    const OptionSpec* spec = find_option(*entry, key);
    if (spec == nullptr) throw Error(entry->id() + " has no option '" + key + "'");
    try {
      values[key] = value_of(*spec, value);
    } catch (const json::exception&) {
      throw Error(entry->id() + ": option '" + key + "' does not take " + value.dump());
    }
  }
  return registry().create<Contract>(name, values);
}

MeshDegrees degrees_of(const json& mesh) {
  MeshDegrees d;
  d.pp = mesh.value("pp", int64_t{1});
  d.dp_replicate = mesh.value("dp_replicate", int64_t{1});
  d.dp_shard = mesh.value("dp_shard", int64_t{1});
  d.cp = mesh.value("cp", int64_t{1});
  d.tp = mesh.value("tp", int64_t{1});
  d.ep = mesh.value("ep", int64_t{1});
  return d;
}

// dp_shard's component also serves context parallel ranks: parameters are sharded over both.
bool in_use(MeshDim dim, const MeshDegrees& d) {
  if (dim == MeshDim::dp_shard) return d.dp_shard * d.cp > 1;
  return Mesh(d, 0).degree(dim) > 1;
}

TraceLevel trace_level(const std::string& name) {
  if (name == "off") return TraceLevel::off;
  if (name == "blocks") return TraceLevel::blocks;
  if (name == "ops") return TraceLevel::ops;
  throw Error("train.trace does not take '" + name + "'", "off, blocks, ops");
}

TrainSettings settings_of(const json& config, int64_t seq_len) {
  const json train = config.value("train", json::object());
  TrainSettings s;
  s.steps = train.at("steps");
  s.batch = {.global_batch = train.at("global_batch"),
             .micro_batch = train.at("micro_batch"),
             .seq_len = seq_len};
  s.max_norm = train.value("max_norm", 1.0);
  s.eval_every = train.value("eval_every", int64_t{0});
  s.eval_batches = train.value("eval_batches", int64_t{4});
  s.warmup_steps = train.value("warmup_steps", int64_t{5});
  s.lr = config.at("optim").at("lr");
  s.schedule.name = train.value("schedule", "cosine");
  s.schedule.decay_shape = train.value("decay_shape", "linear");
  s.schedule.total = s.steps;
  s.schedule.warmup = train.value("warmup", s.steps / 10);
  s.schedule.decay_ratio = train.value("decay_ratio", 0.2);
  s.schedule.min_factor = train.value("min_factor", 0.0);
  s.seed = config.value("seed", uint64_t{1});
  s.trace = trace_level(train.value("trace", "off"));
  return s;
}

}  // namespace

Recipe make_recipe(const json& config) {
  Recipe r;
  r.data = make<DataSource>(config.at("data"));
  r.model = make<Model>(config.at("model"));
  r.model->bind({.data_vocabulary = r.data->vocabulary()});
  r.precision = make<Precision>(config.at("precision"));
  r.memory = make<MemoryPolicy>(config.at("memory"));
  r.compile = make<CompileBackend>(config.at("compile"));
  r.optimizer = make<Optimizer>(config.at("optim"));
  r.degrees = degrees_of(config.value("mesh", json::object()));
  const json parallel = config.value("parallel", json::object());
  for (const auto& [dim, component] : parallel.items()) {
    const MeshDim mesh_dim = parse_mesh_dim(dim);
    if (in_use(mesh_dim, r.degrees)) r.parallel[mesh_dim] = make<ParallelStrategy>(component);
  }
  if (r.degrees.world() > 1) r.comm = make<CommBackend>(config.at("comm"));
  r.settings = settings_of(config, r.model->sequence_length());
  return r;
}

}  // namespace assay::train
