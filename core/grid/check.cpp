// assay's own rules, and the evaluation of those that components bring.
#include "core/grid/check.h"

#include <algorithm>
#include <regex>

#include "assay/error.h"

namespace assay::grid {
namespace {

std::string number(int64_t value) { return std::to_string(value); }

/// A long list is no help to read.
std::string brief(const Value& value) {
  constexpr size_t kMostItems = 8;
  const auto* items = get_if<std::vector<Value>>(value);
  if (!items || items->size() <= kMostItems) return print(value);
  return "a list of " + number(static_cast<int64_t>(items->size())) + ", " + print(items->front()) +
         " the first";
}

}  // namespace

std::string without_rule_id(const std::string& text, std::string& id) {
  static const std::regex kId("\\[(R-[A-Z0-9]+)\\] |^(R-[A-Z0-9]+): ");
  std::smatch match;
  if (!std::regex_search(text, match, kId)) return text;
  id = match[1].matched ? match[1] : match[2];
  return match.prefix().str() + match.suffix().str();
}

/// Names of a rule in one cell.
class Checker::RuleScope final : public Scope {
 public:
  RuleScope(const Checker& checker, const CellView& cell, const BoundRule& rule)
      : checker_(checker), cell_(cell), rule_(rule) {}

  Value value(size_t name) const override {
    const BoundName& bound = rule_.names[name];
    switch (bound.kind) {
      case BoundName::Kind::key: {
        const int entry = cell_.layout.entry(bound.key);
        return entry < 0 ? Value() : cell_.values[static_cast<size_t>(entry)]->value;
      }
      case BoundName::Kind::fact:
        return cell_.model.value(bound.word);
      case BoundName::Kind::capability:
        return checker_.met(cell_, bound.word);
    }
    return {};
  }

 private:
  const Checker& checker_;
  const CellView& cell_;
  const BoundRule& rule_;
};

Checker::Checker(const Keys& keys, const Machine& machine, int devices, Findings& findings)
    : keys_(keys), machine_(machine), devices_(devices), findings_(findings) {
  for (size_t i = 0; i < kMeshDims.size(); ++i) {
    mesh_keys_[i] = *keys.find("mesh." + std::string(kMeshDims[i]));
  }
}

int64_t Checker::whole(const Layout& layout, const Values& values, size_t key) const {
  const int entry = layout.entry(key);
  const auto* value =
      entry < 0 ? nullptr : std::get_if<int64_t>(&values[static_cast<size_t>(entry)]->option);
  return value ? *value : 1;
}

int64_t Checker::whole(const CellView& cell, std::string_view key) const {
  return whole(cell.layout, cell.values, *keys_.find(key));
}

/// Nothing where the cell has no such option, or one of another type.
template <class T>
std::optional<T> Checker::option(const CellView& cell, const std::string& key) const {
  const auto id = keys_.find(key);
  const int entry = id ? cell.layout.entry(*id) : -1;
  if (entry < 0) return std::nullopt;
  const auto* value = std::get_if<T>(&cell.values[static_cast<size_t>(entry)]->option);
  return value ? std::optional(*value) : std::nullopt;
}

int Checker::world(const Layout& layout, const Values& values) const {
  int64_t world = 1;
  for (size_t i = 0; i < kMeshDims.size(); ++i) {
    if (kMeshDims[i] == "ep") continue;  // experts live on the ranks of the other dimensions
    if (__builtin_mul_overflow(world, whole(layout, values, mesh_keys_[i]), &world)) return INT_MAX;
  }
  return static_cast<int>(std::min<int64_t>(world, INT_MAX));
}

/// dp_shard's component also serves cp: parameters are sharded over dp_shard * cp.
int64_t Checker::used_degree(const CellView& cell, std::string_view dim) const {
  const int64_t degree = whole(cell, "mesh." + std::string(dim));
  return dim == "dp_shard" ? degree * whole(cell, "mesh.cp") : degree;
}

bool Checker::met(const CellView& cell, const std::string& word) const {
  if (word == "world.multi") return world(cell.layout, cell.values) > 1;
  if (word == "grad.final") return true;  // the engine announces every final gradient
  if (word == "param.whole") {
    return used_degree(cell, "dp_shard") == 1 && used_degree(cell, "tp") == 1 &&
           used_degree(cell, "ep") == 1;
  }
  if (machine_.properties.contains(word)) return true;
  return std::any_of(cell.layout.chosen.begin(), cell.layout.chosen.end(),
                     [&](const Component* component) {
                       if (!component) return false;
                       const auto& words = component->provides;
                       return std::find(words.begin(), words.end(), word) != words.end();
                     });
}

std::vector<std::pair<const Component*, std::string>> Checker::idle(const CellView& cell) const {
  std::vector<std::pair<const Component*, std::string>> found;
  for (size_t i = 0; i < keys_.slots().size(); ++i) {
    const Slot& slot = keys_.slots()[i];
    const Component* component = cell.layout.chosen[i];
    if (slot.kind == Kind::parallel && component && used_degree(cell, slot.dim) == 1) {
      found.emplace_back(component, slot.dim);
    }
  }
  return found;
}

std::optional<Refusal> Checker::mesh(const CellView& cell) const {
  for (size_t i = 0; i < keys_.slots().size(); ++i) {
    const Slot& slot = keys_.slots()[i];
    if (slot.kind != Kind::parallel || cell.layout.chosen[i]) continue;
    const int64_t degree = used_degree(cell, slot.dim);
    if (degree == 1) continue;
    const bool with_cp = slot.dim == "dp_shard" && whole(cell, "mesh.cp") > 1;
    return Refusal{.id = "R-MESH",
                   .text = "mesh." + slot.dim + (with_cp ? " * mesh.cp is " : " is ") +
                           number(degree) + ", but no component serves " + slot.dim,
                   .keys = {*keys_.find("mesh." + slot.dim), *keys_.find("mesh.cp")},
                   .hints = {"name one: '" + slot.prefix + ".name'"}};
  }
  const int64_t ep = whole(cell, "mesh.ep");
  const int64_t ranks =
      whole(cell, "mesh.dp_shard") * whole(cell, "mesh.cp") * whole(cell, "mesh.tp");
  if (ranks % ep != 0) {
    return Refusal{
        .id = "R-MESH",
        .text = "mesh.ep " + number(ep) + " does not divide dp_shard * cp * tp = " + number(ranks),
        .keys = {*keys_.find("mesh.ep")}};
  }
  return std::nullopt;
}

std::optional<Refusal> Checker::devices(const CellView& cell) const {
  const int ranks = world(cell.layout, cell.values);
  if (ranks <= devices_) return std::nullopt;
  Refusal refusal{.id = "R-MESH",
                  .text = "a world of " + number(ranks) + " ranks needs as many devices; there " +
                          (devices_ == 1 ? "is 1" : "are " + number(devices_)),
                  .hints = {"lower a mesh degree, or set run.devices: " + number(ranks) +
                            " to let ranks share cores (then no timing counts)"}};
  for (size_t i = 0; i < kMeshDims.size(); ++i) {
    if (whole(cell.layout, cell.values, mesh_keys_[i]) > 1) refusal.keys.push_back(mesh_keys_[i]);
  }
  return refusal;
}

std::optional<Refusal> Checker::batch(const CellView& cell) const {
  const int64_t global = whole(cell, "train.global_batch");
  const int64_t micro = whole(cell, "train.micro_batch");
  const int64_t ranks = whole(cell, "mesh.dp_replicate") * whole(cell, "mesh.dp_shard");
  int64_t forward = 0;
  const bool overflow = __builtin_mul_overflow(ranks, micro, &forward);
  if (!overflow && global % forward == 0) return std::nullopt;
  return Refusal{.id = "R-BATCH",
                 .text = "train.global_batch " + number(global) +
                         " is no multiple of ranks * micro-batch = " + number(ranks) + " * " +
                         number(micro),
                 .keys = {*keys_.find("train.global_batch"), *keys_.find("train.micro_batch"),
                          *keys_.find("mesh.dp_replicate"), *keys_.find("mesh.dp_shard")},
                 .hints = {"change train.global_batch or train.micro_batch (ranks = "
                           "mesh.dp_replicate * mesh.dp_shard)"}};
}

std::optional<Refusal> Checker::learning_rate(const CellView& cell) const {
  const int64_t steps = whole(cell, "train.steps"), warmup = whole(cell, "train.warmup");
  if (warmup <= steps) return std::nullopt;
  return Refusal{
      .id = "R-LR",
      .text = "train.warmup " + number(warmup) + " is longer than train.steps " + number(steps),
      .keys = {*keys_.find("train.warmup"), *keys_.find("train.steps")}};
}

/// While a checkpoint is written, a whole one has to stay.
std::optional<Refusal> Checker::checkpoints(const CellView& cell) const {
  if (whole(cell, "train.keep") != 1) return std::nullopt;
  return Refusal{.id = "R-CKPT",
                 .text = "train.keep is 1: no good checkpoint would outlive a failed write",
                 .keys = {*keys_.find("train.keep")},
                 .hints = {"0 keeps all, 2 or more that many"}};
}

std::optional<Refusal> Checker::sequence(const CellView& cell) const {
  const auto key = keys_.find("model.seq_len");
  const auto tokens = get_if<int64_t>(cell.data.value("tokens"));
  if (!key || !tokens || cell.layout.entry(*key) < 0) return std::nullopt;
  const int64_t seq_len = whole(cell.layout, cell.values, *key);
  if (*tokens > seq_len) return std::nullopt;
  return Refusal{.id = "R-SEQ",
                 .text = "the text has " + number(*tokens) +
                         " tokens: fewer than one sequence of " + number(seq_len) +
                         " and the token after it",
                 .keys = {*key},
                 .hints = {"lower model.seq_len, or give a longer text"}};
}

/// A model that refuses its options says so when it is described.
std::optional<Refusal> Checker::model_facts(const CellView& cell) const {
  if (!cell.model.error) return std::nullopt;
  Refusal refusal{.id = "R-MODEL"};
  refusal.text = without_rule_id(*cell.model.error, refusal.id);
  if (!cell.model.hint.empty()) refusal.hints.push_back(cell.model.hint);
  for (const Entry& entry : cell.layout.entries) {
    if (entry.component && entry.component->kind == Kind::model) refusal.keys.push_back(entry.key);
  }
  return refusal;
}

/// A schedule needs code: manifests cannot express R-CSV, R-PPL and the finer rules of shapes.
std::optional<Refusal> Checker::pipeline(const CellView& cell) const {
  const std::string pp = "parallel.pp.";
  const auto schedule = option<std::string>(cell, pp + "schedule");
  const int64_t ranks = whole(cell, "mesh.pp");
  if (!schedule || ranks == 1) return std::nullopt;
  const auto layers = get_if<int64_t>(cell.model.value("layers"));
  const auto refused = pipelines_.refusal(
      {.schedule = *schedule,
       .csv = option<std::string>(cell, pp + "csv").value_or(""),
       .ranks = ranks,
       .chunks = option<int64_t>(cell, pp + "v").value_or(0),
       .microbatches = whole(cell, "train.grad_accum"),
       .layers = layers ? *layers : 0,
       .first_less_layers = option<int64_t>(cell, pp + "first_less_layers").value_or(0),
       .last_less_layers = option<int64_t>(cell, pp + "last_less_layers").value_or(0),
       .allow_short = option<bool>(cell, pp + "allow_short").value_or(false)});
  if (!refused) return std::nullopt;
  Refusal refusal{.id = refused->rule, .text = "parallel/pp: " + refused->text};
  for (const char* key : {"csv", "v", "schedule", "name"}) {
    if (const auto id = keys_.find(pp + key)) refusal.keys.push_back(*id);
  }
  refusal.keys.push_back(*keys_.find("mesh.pp"));
  if (!refused->hint.empty()) refusal.hints.push_back(refused->hint);
  return refusal;
}

std::optional<Refusal> Checker::rule(const CellView& cell, const BoundRule& rule) const {
  if (!rule.expression) {
    return Refusal{.id = rule.id, .text = rule.text, .keys = {keys_.slots()[rule.slot].name_key}};
  }
  try {
    if (rule.expression->holds(RuleScope(*this, cell, rule))) return std::nullopt;
  } catch (const ExpressionError& error) {
    const PluginFile* file = cell.layout.chosen[rule.slot]->file;
    findings_.add({.id = "P10",
                   .place = file ? file->place : rule.component,
                   .text = "rule " + rule.id + " of " + rule.component + ": " + error.what()});
    return std::nullopt;
  }
  return broken(cell, rule);
}

Refusal Checker::broken(const CellView& cell, const BoundRule& rule) const {
  Refusal refusal{.id = rule.id, .text = rule.text};
  const size_t own = keys_.slots()[rule.slot].name_key;
  if (rule.id == "R-NEEDS") {
    refusal.keys = {own};
    return refusal;
  }
  const RuleScope scope(*this, cell, rule);
  std::string values;
  for (size_t i = 0; i < rule.names.size(); ++i) {
    if (rule.names[i].kind == BoundName::Kind::key) refusal.keys.push_back(rule.names[i].key);
    values += (values.empty() ? "" : ", ") + rule.expression->names()[i].text + " is " +
              brief(scope.value(i));
  }
  refusal.keys.push_back(own);
  refusal.text = rule.component + ": " + rule.text + (values.empty() ? "" : "; " + values);
  refusal.hints = {"needs: " + rule.expression->text()};
  return refusal;
}

std::optional<Refusal> Checker::check(const CellView& cell) const {
  constexpr Own kOwn[] = {&Checker::mesh,        &Checker::devices,       &Checker::batch,
                          &Checker::checkpoints, &Checker::learning_rate, &Checker::sequence,
                          &Checker::model_facts};
  for (const Own own : kOwn) {
    if (auto refusal = (this->*own)(cell)) return refusal;
  }
  for (const BoundRule& bound : cell.layout.rules) {
    if (auto refusal = rule(cell, bound)) return refusal;
  }
  return pipeline(cell);
}

}  // namespace assay::grid
