// The walk over yaml-cpp's events: own duplicate, alias, depth and size checks.
#include "core/grid/node.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/units.h"
#include "core/grid/yaml_text.h"

namespace assay::grid {
namespace {

/// Ends the walk after a limit has been reported.
struct Abandoned {};

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, Findings& findings) : source_(source), findings_(findings) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ == 0) return;
    findings_.error("G02", at(mark), "a second YAML document starts here; a study is one document");
    throw Abandoned();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place({.mark = at(mark)}, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node{
        .kind = Node::Kind::scalar, .text = value, .quoted = tag != "?", .mark = of_value(mark)};
    check_tag(tag, node.mark);
    node.mark.length = scalar_length(source_, node.mark, node);
    place(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      findings_.error("G12", at(mark), "an alias may not stand inside the node that it repeats");
      throw Abandoned();
    }
    Node copy = found->second;
    mark_alias(copy, at(mark), 0);
    place(std::move(copy), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(Node::Kind::sequence, of_value(mark), tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(Node::Kind::map, of_value(mark), tag, anchor);
  }
  void OnSequenceEnd() override { finish(); }
  void OnMapEnd() override { finish(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<Node> key{};
  };

  Mark at(const YAML::Mark& mark) const { return mark_in(source_, mark.line, mark.column); }

  /// The same behind an anchor or tag: yaml-cpp's mark is that of the '&' or '!'.
  Mark of_value(const YAML::Mark& mark) const { return skip_properties(at(mark)); }

  void check_tag(const std::string& tag, const Mark& mark) {
    if (tag.empty() || tag == "?" || tag == "!" || tag == "tag:yaml.org,2002:str") return;
    findings_.error("G02", mark, "YAML tags are not supported: '" + tag + "'",
                    {"write the value without a tag; its type follows from the option"});
  }

  void count(const Mark& mark) {
    if (++nodes_ <= kMostNodes) return;
    findings_.error("G12", mark, "the file has more than 200,000 nodes after aliases are expanded");
    throw Abandoned();
  }

  void check_depth(size_t depth, const Mark& mark) {
    if (depth <= kMostDepth) return;
    findings_.error("G12", mark, "the file is nested more than 32 levels deep");
    throw Abandoned();
  }

  void mark_alias(Node& node, const Mark& mark, size_t depth) {
    count(mark);
    check_depth(open_.size() + depth, mark);
    node.alias = mark;
    for (Node& item : node.items) mark_alias(item, mark, depth + 1);
    for (Member& member : node.members) mark_alias(member.value, mark, depth + 1);
  }

  void start(Node::Kind kind, const Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check_tag(tag, mark);
    check_depth(open_.size() + 1, mark);
    open_.push_back({.node = {.kind = kind, .mark = mark}, .anchor = anchor});
  }

  void finish() {
    Open done = std::move(open_.back());
    open_.pop_back();
    place(std::move(done.node), done.anchor);
  }

  void place(Node node, YAML::anchor_t anchor) {
    count(node.mark);
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.is_sequence()) {
      open_.back().node.items.push_back(std::move(node));
    } else if (!open_.back().key) {
      open_.back().key = std::move(node);
    } else {
      add_member(open_.back(), std::move(node));
    }
  }

  void add_member(Open& map, Node value) {
    const Node key = *std::exchange(map.key, std::nullopt);
    const Mark mark = key.alias.value_or(key.mark);
    if (!key.is_scalar()) {
      findings_.error("G02", mark, "a key must be plain text");
    } else if (key.text == "<<") {
      findings_.error("G11", mark,
                      "YAML merge keys ('<<') are not supported; use 'extends' or a variant");
    } else if (const Member* first = map.node.member(key.text)) {
      findings_.error("G05", mark,
                      "key '" + key.text + "' is set twice; first at " + first->mark.position());
    } else {
      map.node.members.push_back({key.text, mark, std::move(value)});
    }
  }

  const Source& source_;
  Findings& findings_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  int documents_ = 0;
  int nodes_ = 0;
};

void emit(YAML::Emitter& out, const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      out << YAML::Null;
      return;
    case Node::Kind::scalar:
      if (node.quoted) out << YAML::DoubleQuoted;
      out << node.text;
      return;
    case Node::Kind::sequence:
      out << YAML::BeginSeq;
      for (const Node& item : node.items) emit(out, item);
      out << YAML::EndSeq;
      return;
    case Node::Kind::map:
      out << YAML::BeginMap;
      for (const Member& member : node.members) {
        out << YAML::Key << member.key << YAML::Value;
        emit(out, member.value);
      }
      out << YAML::EndMap;
  }
}

nlohmann::json scalar_json(const Node& node) {
  if (node.quoted) return node.text;
  if (const auto b = parse_boolean(node.text)) return *b;
  if (const auto i = parse_integer(node.text)) return *i;
  if (const auto d = parse_real(node.text)) return *d;
  return node.text;
}

nlohmann::json tree_json(const Node& node) {
  if (node.is_null()) return nullptr;
  if (node.is_scalar()) return scalar_json(node);
  nlohmann::json json = node.is_map() ? nlohmann::json::object() : nlohmann::json::array();
  for (const Node& item : node.items) json.push_back(tree_json(item));
  for (const Member& member : node.members) json[member.key] = tree_json(member.value);
  return json;
}

}  // namespace

const Member* Node::member(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member;
  }
  return nullptr;
}

const Node* Node::find(std::string_view key) const {
  const Member* found = member(key);
  return found ? &found->value : nullptr;
}

Node read_yaml(std::string_view text, const Source& source, Findings& findings) {
  if (!check_utf8(text, source, findings)) return {};
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(source, findings);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    report_syntax(text, source, error.mark.line, error.mark.column, error.msg, findings);
    return {};
  } catch (const Abandoned&) {
    return {};
  }
  return builder.take();
}

std::string emit_yaml(const Node& node) {
  YAML::Emitter out;
  emit(out, node);
  return std::string(out.c_str()) + "\n";
}

std::string to_json_text(const Node& node) { return tree_json(node).dump(); }

std::string describe(const Node& node) {
  if (node.is_null()) return "~";
  if (node.is_scalar()) return node.text;
  std::string text;
  for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + describe(item);
  for (const Member& member : node.members) {
    text += (text.empty() ? "" : ", ") + member.key + "=" + describe(member.value);
  }
  return text;
}

}  // namespace assay::grid
