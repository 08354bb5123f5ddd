// Checks: every cell is kept or refused with a rule id and a reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/grid/facts.h"
#include "core/grid/pipeline_check.h"
#include "core/grid/plan.h"

namespace assay::grid {

struct Refusal {
  std::string id{};
  std::string text{};
  std::vector<size_t> keys{};  ///< that the refusal speaks of, the likeliest place first
  std::vector<std::string> hints{};
};

/// What a component says when it refuses: "... [R-HEADS] ..." or "R-HEADS: ..." without the rule's
/// id, which becomes `id`.
std::string without_rule_id(const std::string& text, std::string& id);

struct CellView {
  const Layout& layout;
  const Values& values;
  Facts& data;
  Facts& model;
};

class Checker {
 public:
  Checker(const Keys& keys, const Machine& machine, int devices, Findings& findings);

  /// The first rule that the cell breaks; assay's own come before those of components, but for
  /// those of pipeline schedules.
  std::optional<Refusal> check(const CellView& cell) const;

  /// Components that stand at degree 1: "parallel/fsdp" and the dimension.
  std::vector<std::pair<const Component*, std::string>> idle(const CellView& cell) const;

  int world(const Layout& layout, const Values& values) const;

 private:
  class RuleScope;
  using Own = std::optional<Refusal> (Checker::*)(const CellView&) const;

  int64_t whole(const Layout& layout, const Values& values, size_t key) const;
  int64_t whole(const CellView& cell, std::string_view key) const;
  template <class T>
  std::optional<T> option(const CellView& cell, const std::string& key) const;
  bool met(const CellView& cell, const std::string& word) const;
  int64_t used_degree(const CellView& cell, std::string_view dim) const;
  std::optional<Refusal> mesh(const CellView& cell) const;
  std::optional<Refusal> devices(const CellView& cell) const;
  std::optional<Refusal> batch(const CellView& cell) const;
  std::optional<Refusal> learning_rate(const CellView& cell) const;
  std::optional<Refusal> checkpoints(const CellView& cell) const;
  std::optional<Refusal> sequence(const CellView& cell) const;
  std::optional<Refusal> model_facts(const CellView& cell) const;
  std::optional<Refusal> pipeline(const CellView& cell) const;
  std::optional<Refusal> rule(const CellView& cell, const BoundRule& rule) const;
  Refusal broken(const CellView& cell, const BoundRule& rule) const;

  const Keys& keys_;
  const Machine& machine_;
  int devices_;
  Findings& findings_;
  std::array<size_t, kMeshDims.size()> mesh_keys_;
  mutable PipelineCheck pipelines_{};  // remembers the files it has read
};

}  // namespace assay::grid
