// Parameters: declared by logical axis, placed as boxes; strategies shard axes, never models.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "assay/api.h"
#include "assay/mesh.h"
#include "assay/tensor.h"

namespace assay {

/// What a dimension of a parameter means (as in GSPMD, T5X, MaxText).
enum class Axis { vocab, hidden, heads, kv_heads, head_dim, ffn, expert, none };

ASSAY_API const char* name_of(Axis axis);

/// One dimension. A cut falls on a multiple of `granule` (heads: head_dim).
struct AxisSpec {
  Axis axis = Axis::none;
  int64_t granule = 1;
};

enum class ParameterRole { embedding, matrix, head, norm, bias, router };

ASSAY_API const char* name_of(ParameterRole role);

/// Initial value; drawn per element from a counter-based generator keyed by
/// (seed, parameter name, global element index), so every layout starts from the same numbers.
struct Init {
  enum class Kind { constant, normal, truncated_normal };
  Kind kind = Kind::constant;
  double mean = 0.0;  ///< the value, for `constant`
  double std = 1.0;
  double cut = 3.0;  ///< truncated_normal: at this many std
};

struct ParameterSpec {
  std::string name{};  ///< unique; equal on every rank and in every layout
  Shape shape{};       ///< global
  std::vector<AxisSpec> axes{};
  Init init{};
  ParameterRole role = ParameterRole::matrix;
};

/// A half-open box in the global tensor: begin[d] .. begin[d] + size[d].
struct ASSAY_API Box {
  Shape begin{};
  Shape size{};
  int64_t numel() const;
};

ASSAY_API Box whole(const Shape& shape);

/// Where the part of one parameter that a rank holds lies. TP, EP and FSDP cut in that order.
class ASSAY_API ParameterPlacement {
 public:
  struct Cut {
    MeshDim mesh_dim;
    int64_t tensor_dim;
  };

  ParameterPlacement() = default;
  explicit ParameterPlacement(const ParameterSpec& spec);

  /// Keeps part `index` of `degree` of tensor dimension `dim`: chunks of ceil(size / degree),
  /// rounded up to the axis' granule (not for dp_shard, which cuts storage and no meaning); the
  /// last may be smaller or empty.
  void cut(MeshDim mesh_dim, int64_t dim, int64_t degree, int64_t index);

  const ParameterSpec& spec() const { return spec_; }
  const Box& box() const { return box_; }
  const std::vector<Cut>& cuts() const { return cuts_; }
  /// The tensor dimension that `mesh_dim` cut, if it did.
  std::optional<int64_t> cut_by(MeshDim mesh_dim) const;
  /// The first tensor dimension on `axis`.
  std::optional<int64_t> dim_of(Axis axis) const;
  /// Ranks that hold the same local box and other tokens, apart from dp_replicate: `fsdp`, for
  /// expert weights `efsdp`. Storage is cut and gradients are summed over them.
  MeshGroup shard_group() const;

  /// The gradient of each rank of this group is a part of a sum (an unsharded weight applied to
  /// sequence shards): summed after the data-parallel reductions, on the stored box.
  std::optional<MeshGroup> partial_over{};

 private:
  ParameterSpec spec_;
  Box box_;
  std::vector<Cut> cuts_;
};

/// What an optimizer may know of a parameter when it declares its state.
struct ParameterInfo {
  std::string name{};
  Shape shape{};  ///< whole
  std::vector<AxisSpec> axes{};
  ParameterRole role = ParameterRole::matrix;
  Shape shard_shape{};
  at::ScalarType dtype = at::kFloat;  ///< of the weight
};

}  // namespace assay
