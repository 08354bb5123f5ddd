// FakeComponents: a catalogue from tests/data/plan/catalogue.json, with facts computed here.
#pragma once

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "core/grid/components.h"

namespace assay::grid {

class FakeComponents final : public Components {
 public:
  FakeComponents() {
    const auto text = read_file(std::filesystem::path(ASSAY_TEST_DATA) / "plan/catalogue.json");
    for (const nlohmann::json& document : nlohmann::json::parse(text)) add(document);
  }

  void add(nlohmann::json document) {
    fill(document, {{"summary", ""},
                    {"reference", ""},
                    {"provides", nlohmann::json::array()},
                    {"needs", nlohmann::json::array()},
                    {"dims", nlohmann::json::array()},
                    {"default_lr", nullptr},
                    {"conflicts", nlohmann::json::array()},
                    {"rules", nlohmann::json::array()},
                    {"options", nlohmann::json::array()}});
    for (nlohmann::json& option : document["options"]) {
      fill(option, {{"required", false},
                    {"unit", ""},
                    {"low", nullptr},
                    {"high", nullptr},
                    {"choices", nlohmann::json::array()},
                    {"aliases", nlohmann::json::array()},
                    {"affects", "numerics"},
                    {"default", nullptr}});
    }
    components_.push_back(component_from_json(document));
    Component& component = components_.back();
    files_.push_back({.path = "/plugins/" + component.name + ".assay.so",
                      .place = component.name + ".assay.so",
                      .sha256 = sha256(component.id())});
    component.file = &files_.back();
  }

  const Component* find(Kind kind, std::string_view name) const override {
    for (const Component& c : components_) {
      if (c.kind == kind && c.name == name) return &c;
    }
    return nullptr;
  }

  std::vector<std::string> names(Kind kind) const override {
    std::vector<std::string> names;
    for (const Component& c : components_) {
      if (c.kind == kind) names.push_back(c.name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Diagnostic unknown(Kind kind, std::string_view name) const override {
    const std::string prefix = std::string(name_of(kind)) + "/";
    Diagnostic d{.id = "P03", .text = "no component " + prefix + std::string(name)};
    const auto near = nearest(name, names(kind));
    if (!near.empty()) d.hints = {"did you mean " + prefix + near[0] + "?"};
    return d;
  }

  nlohmann::json facts(const FactsRequest& request) const override {
    ++asked;
    return request.kind == Kind::data ? data_facts(request) : model_facts(request);
  }

  void prepare_facts(std::span<const FactsRequest> requests) const override {
    if (!requests.empty()) ++batches;
  }

  mutable int asked = 0;
  mutable int batches = 0;

 private:
  static void fill(nlohmann::json& document, const nlohmann::json& defaults) {
    for (const auto& [key, value] : defaults.items()) {
      if (!document.contains(key)) document[key] = value;
    }
  }

  static nlohmann::json data_facts(const FactsRequest& request) {
    if (request.name != "text") {
      return {{"fingerprint", sha256(request.options.dump())},
              {"vocabulary", 272},
              {"tokens", 1'000'000},
              {"bytes", 1'000'000}};
    }
    const std::filesystem::path path = request.options.at("path").get<std::string>();
    const std::string name = "data/text: " + path.filename().string();
    if (!std::filesystem::exists(path)) {
      throw Error(name + ": no such file", "check data.path, or run tools/setup");
    }
    const std::string text = read_file(path);
    if (text.empty()) throw Error(name + " is empty", "data.path needs text to train on");
    if (text.find('\0') != text.npos) {
      throw Error(name + " is no text: byte " + std::to_string(text.find('\0')) + " is 0",
                  "give a text, JSONL or .bin file");
    }
    return {{"fingerprint", sha256(text)},
            {"vocabulary", 272},
            {"tokens", text.size()},
            {"bytes", text.size()}};
  }

  static nlohmann::json model_facts(const FactsRequest& request) {
    struct Shape {
      int64_t hidden, layers, heads, kv_heads;
    };
    const std::map<std::string, Shape> shapes = {{"tiny", {128, 4, 4, 2}},
                                                 {"small", {256, 6, 8, 4}},
                                                 {"medium", {512, 8, 8, 4}},
                                                 {"debug", {256, 6, 16, 16}},
                                                 {"1B", {2048, 16, 32, 8}}};
    const nlohmann::json& options = request.options;
    Shape shape = shapes.at(options.at("flavour"));
    if (options.value("heads", 0) > 0) shape.heads = options.at("heads");
    if (options.value("kv_heads", 0) > 0) shape.kv_heads = options.at("kv_heads");
    if (options.value("vocab", "data") == "flavour" && options.at("flavour") == "tiny") {
      throw Error("R-VOCAB: flavour tiny has no vocabulary of its own", "set model.vocab: data");
    }
    return {{"hidden", shape.hidden},
            {"layers", shape.layers},
            {"heads", shape.heads},
            {"kv_heads", shape.kv_heads},
            {"parameters", parameters(request.name, shape.hidden)},
            {"vocab", request.context.value("vocab", 0)}};
  }

  /// A few names of a model; the experts of a mixture are one tensor.
  static nlohmann::json parameters(const std::string& model, int64_t hidden) {
    const auto parameter = [](const char* name, const char* role, std::vector<int64_t> shape) {
      return nlohmann::json{{"name", name}, {"role", role}, {"shape", shape}};
    };
    nlohmann::json list{
        parameter("model.embed_tokens.weight", "embedding", {272, hidden}),
        parameter("model.layers.0.self_attn.q_proj.weight", "matrix", {hidden, hidden}),
        parameter("lm_head.weight", "head", {272, hidden})};
    if (model == "moe") {
      list.push_back(parameter("model.layers.0.mlp.experts.up_proj.weight", "matrix",
                               {8, 3 * hidden, hidden}));
    }
    return list;
  }

  std::deque<Component> components_;
  std::deque<PluginFile> files_;
};

/// Binaries whose hashes never change.
inline Binaries fake_binaries() {
  return {.libassay = std::string(64, '2'), .libtorch = "2.11.0", .worker = std::string(64, '1')};
}

inline Machine fake_machine(int devices = 2) {
  return {.devices = devices, .properties = {"device.cpu", "cpu.avx2", "dtype.bf16"}};
}

}  // namespace assay::grid
