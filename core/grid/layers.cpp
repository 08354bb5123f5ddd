// Files, extends and the environment; nested maps as dotted keys.
#include "core/grid/layers.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"

namespace assay::grid {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kComponentSections{
    "model", "data", "memory", "precision", "optim", "compile", "comm"};

void flatten_into(const Node& node, const std::string& key, const Mark& mark, Findings& findings,
                  std::vector<FlatMember>& out) {
  if (node.is_map()) {
    for (const Member& member : node.members) {
      flatten_into(member.value, key.empty() ? member.key : key + "." + member.key, member.mark,
                   findings, out);
    }
    return;
  }
  const bool names = node.is_scalar() && is_component_position(key);
  const std::string canonical = names ? key + ".name" : key;
  const auto same =
      std::find_if(out.begin(), out.end(), [&](const FlatMember& m) { return m.key == canonical; });
  if (same != out.end()) {
    findings.error("G05", mark,
                   "key '" + canonical + "' is set twice; first at " + same->mark.position());
    return;
  }
  out.push_back({canonical, mark, &node});
}

/// "memory" covers "memory.name".
bool covers(std::string_view key, std::string_view other) {
  return other == key ||
         (other.starts_with(key) && other.size() > key.size() && other[key.size()] == '.');
}

/// `base:` and `defaults:` with dotted keys, so that layers in either spelling meet.
void flatten_section(Node& root, std::string_view section, Findings& findings) {
  for (Member& member : root.members) {
    if (member.key != section || !member.value.is_map()) continue;
    Node flat{.kind = Node::Kind::map, .mark = member.value.mark};
    for (const FlatMember& m : flatten(member.value, "", member.mark, findings)) {
      flat.members.push_back({m.key, m.mark, *m.value});
    }
    member.value = std::move(flat);
  }
}

void merge(Node& into, Node from, bool dotted) {
  for (Member& member : from.members) {
    if (member.value.is_null()) {
      std::erase_if(into.members, [&](const Member& m) {
        return dotted ? covers(member.key, m.key) : m.key == member.key;
      });
      continue;
    }
    const auto same = std::find_if(into.members.begin(), into.members.end(),
                                   [&](const Member& m) { return m.key == member.key; });
    if (same == into.members.end()) {
      into.members.push_back(std::move(member));
    } else if (same->value.is_map() && member.value.is_map()) {
      const bool inner = member.key == "base" || member.key == "defaults";
      same->mark = member.mark;
      merge(same->value, std::move(member.value), inner);
    } else {
      *same = std::move(member);
    }
  }
}

class Loader {
 public:
  Loader(Study& study, Findings& findings) : study_(study), findings_(findings) {}

  Node load(const fs::path& file, const Mark& from) {
    const fs::path canonical = fs::weakly_canonical(file);
    for (const auto& [open, name] : chain_) {
      if (open == canonical) {
        findings_.error("G03", from, "'extends' runs in a circle: " + circle(canonical, file));
        return {};
      }
    }
    std::string text;
    if (!read(file, from, text)) return {};
    if (chain_.empty()) study_.yaml_text = text;
    chain_.emplace_back(canonical, file.string());
    Node node = layered(text, file);
    chain_.pop_back();
    return node;
  }

 private:
  bool read(const fs::path& file, const Mark& from, std::string& text) {
    try {
      if (fs::is_directory(file)) throw Error(file.string() + ": is a folder, not a file");
      text = read_file(file);
      return true;
    } catch (const Error& error) {
      if (chain_.empty()) {
        throw Error(error.what(), "give the path of a study, such as experiments/quickstart.yaml");
      }
      findings_.error("G03", from, error.what());
      return false;
    }
  }

  Node layered(const std::string& text, const fs::path& file) {
    study_.sources.push_back(Source::make(file.string(), file.parent_path(), text));
    const Source& source = *study_.sources.back();
    Node root = read_yaml(text, source, findings_);
    if (!root.is_map()) {
      if (findings_.empty()) {
        findings_.error("G02", {.source = &source, .line = 1, .column = 1},
                        root.is_null() ? "the file is empty" : "a study is a map of keys",
                        {"start with 'assay: 1' and 'study: NAME'"});
      }
      return {};
    }
    flatten_section(root, "base", findings_);
    flatten_section(root, "defaults", findings_);
    Node result{.kind = Node::Kind::map, .mark = root.mark};
    if (const Member* extends = root.member("extends")) add_bases(*extends, file, result);
    merge(result, std::move(root), false);
    std::erase_if(result.members, [](const Member& m) { return m.key == "extends"; });
    return result;
  }

  void add_bases(const Member& extends, const fs::path& file, Node& result) {
    const auto add = [&](const Node& base) {
      if (!base.is_scalar()) {
        findings_.error("G03", base.mark, "'extends' is a list of file names");
        return;
      }
      Node node = load((file.parent_path() / base.text).lexically_normal(), base.mark);
      if (node.is_map()) merge(result, std::move(node), false);
    };
    if (!extends.value.is_sequence()) return add(extends.value);
    for (const Node& base : extends.value.items) add(base);
  }

  std::string circle(const fs::path& canonical, const fs::path& last) const {
    std::string text;
    bool inside = false;
    for (const auto& [open, name] : chain_) {
      inside = inside || open == canonical;
      if (inside) text += name + " -> ";
    }
    return text + last.string();
  }

  Study& study_;
  Findings& findings_;
  std::vector<std::pair<fs::path, std::string>> chain_;
};

bool is_secret(std::string name) {
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const char* word : {"TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

class Environment {
 public:
  Environment(const Node& root, Findings& findings) : findings_(findings) {
    const Node* names = root.find("env");
    if (!names) return;
    for (const Node& item : names->items) allowed_.push_back(item.text);
  }

  void fill(Node& node) {
    for (Node& item : node.items) fill(item);
    for (Member& member : node.members) fill(member.value);
    if (!node.is_scalar()) return;
    size_t at = 0;
    while ((at = node.text.find("${env:", at)) != std::string::npos) {
      const size_t end = node.text.find('}', at);
      if (end == std::string::npos) {
        findings_.error("G10", node.mark, "'${env:' has no closing '}'");
        return;
      }
      const std::string value = lookup(node.text.substr(at + 6, end - at - 6), node.mark);
      node.text.replace(at, end + 1 - at, value);
      node.quoted = false;  // the quotes are for ${...}; the value is read by its option's type
      at += value.size();
    }
  }

 private:
  std::string lookup(const std::string& inside, const Mark& mark) {
    const size_t dash = inside.find(":-");
    const std::string name = inside.substr(0, dash);
    const std::string quoted = "'${env:" + name + "}'";
    if (is_secret(name)) {
      findings_.error(
          "G10", mark,
          quoted + " may not be used in a study: secrets would be stored in the database");
    } else if (std::find(allowed_.begin(), allowed_.end(), name) == allowed_.end()) {
      const std::string near = did_you_mean(nearest(name, allowed_));
      findings_.error("G10", mark, quoted + " is not listed under 'env:'",
                      {near.empty() ? "add 'env: [" + name + "]' to the study" : near});
    } else if (const char* value = std::getenv(name.c_str())) {
      return value;
    } else if (dash != std::string::npos) {
      return inside.substr(dash + 2);
    } else {
      findings_.error("G10", mark, quoted + " is not set in the environment",
                      {"set it, or write ${env:" + name + ":-a default}"});
    }
    return {};
  }

  std::vector<std::string> allowed_;
  Findings& findings_;
};

}  // namespace

bool is_component_position(std::string_view key) {
  if (std::find(kComponentSections.begin(), kComponentSections.end(), key) !=
      kComponentSections.end()) {
    return true;
  }
  constexpr std::string_view kParallel = "parallel.";
  return key.starts_with(kParallel) && key.find('.', kParallel.size()) == key.npos;
}

std::vector<FlatMember> flatten(const Node& node, const std::string& prefix, const Mark& mark,
                                Findings& findings) {
  std::vector<FlatMember> members;
  flatten_into(node, prefix, mark, findings, members);
  return members;
}

Settings settings_of(const Node& node, const std::string& prefix, const Mark& mark, Layer layer,
                     Findings& findings) {
  Settings settings;
  for (FlatMember& member : flatten(node, prefix, mark, findings)) {
    settings.push_back({std::move(member.key), member.value, member.mark, layer});
  }
  return settings;
}

Node load_layers(const fs::path& file, Study& study, Findings& findings) {
  return Loader(study, findings).load(file, {});
}

void fill_environment(Node& root, Findings& findings) { Environment(root, findings).fill(root); }

}  // namespace assay::grid
