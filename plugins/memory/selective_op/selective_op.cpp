// The decisions of memory/selective_op, and its registration.
#include "selective_op.h"

#include <algorithm>
#include <array>

#include "assay/error.h"
#include "assay/plugin.h"

namespace assay::memory {
namespace {

constexpr std::array<std::string_view, 8> kOperations = {
    "linear",     "attention",      "reduce_scatter", "all_to_all",
    "all_reduce", "choose_experts", "dispatch",       "combine"};

/// "assay::linear" and "assay_fused::linear" -> "linear"; empty for operators of other owners.
std::string_view own_name(std::string_view op) {
  const size_t colons = op.find("::");
  const bool ours = op.starts_with("assay") && colons != std::string_view::npos;
  return ours ? op.substr(colons + 2) : std::string_view();
}

}  // namespace

SelectiveOp::SelectiveOp(const Options& options) : options_(options) {
  for (const std::string& op : options_.save) {
    if (std::find(kOperations.begin(), kOperations.end(), op) != kOperations.end()) continue;
    throw Error(
        "[R-ACLIST] no operation '" + op + "' can be kept",
        "allowed in memory.save: linear, attention, reduce_scatter, all_to_all, all_reduce, "
        "choose_experts, dispatch, combine");
  }
}

bool SelectiveOp::saves(std::string_view op) const {
  return std::find(options_.save.begin(), options_.save.end(), op) != options_.save.end();
}

Keep SelectiveOp::op(const OpUse& use) const {
  if (!saves(own_name(use.op))) return Keep::recompute;
  const bool second = use.linear_number >= 0 && use.linear_number % 2 == 1;
  return options_.every_second && second ? Keep::recompute : Keep::keep;
}

}  // namespace assay::memory

ASSAY_PLUGIN(registrar) {
  registrar.add<assay::memory::SelectiveOp>(
      {.name = "selective_op",
       .summary = "keeps costly outputs of a layer, recomputes the rest",
       .reference = "arXiv:2205.05198",
       .provides = {"meta.safe", "bitwise.identical"}});
}
