// Node: a YAML document as a plain tree with places, read from yaml-cpp's events within limits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/grid/source.h"

namespace assay::grid {

struct Member;

struct Node {
  enum class Kind { null, scalar, sequence, map };

  Kind kind = Kind::null;
  std::string text{};   ///< of a scalar
  bool quoted = false;  ///< quoted and block scalars are text whatever they look like
  std::vector<Node> items{};
  std::vector<Member> members{};  ///< keys are unique
  Mark mark{};                    ///< of the anchored text for a node that an alias repeats
  std::optional<Mark> alias{};    ///< where the alias stands

  bool is_map() const { return kind == Kind::map; }
  bool is_sequence() const { return kind == Kind::sequence; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_null() const { return kind == Kind::null; }
  const Node* find(std::string_view key) const;
  const Member* member(std::string_view key) const;
};

struct Member {
  std::string key;
  Mark mark;
  Node value;
};

constexpr int kMostDepth = 32;
constexpr int kMostNodes = 200'000;

/// Reads one YAML document; errors (G02, G05, G11, G12) go to `findings`. Gives null for a text
/// that is no document at all.
Node read_yaml(std::string_view text, const Source& source, Findings& findings);

/// YAML that reads back as the same tree.
std::string emit_yaml(const Node& node);

/// The tree as JSON: plain scalars that are numbers, true or false as such, the rest as text.
std::string to_json_text(const Node& node);

/// One line for messages and labels: a scalar's text, "a, b", "key=value, ...".
std::string describe(const Node& node);

}  // namespace assay::grid
