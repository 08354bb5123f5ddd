// JSON both ways. The checksum covers the document without it, as nlohmann::json prints it.
#include "core/checkpoint/manifest.h"

#include <array>
#include <utility>

#include "assay/error.h"
#include "core/base/files.h"
#include "core/checkpoint/safetensors.h"

namespace assay::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "assay.checkpoint";
constexpr int kVersion = 1;
constexpr const char* kChecksum = "manifest_sha256";

constexpr std::array<std::pair<TensorKind, const char*>, 3> kKinds{
    {{TensorKind::weight, "weight"},
     {TensorKind::optimizer, "optimizer"},
     {TensorKind::kept, "kept"}}};

TensorKind kind_of(const std::string& name) {
  for (const auto& [kind, text] : kKinds) {
    if (name == text) return kind;
  }
  throw Error("unknown tensor kind '" + name + "'");
}

json chunk_json(const Chunk& chunk) {
  return {{"file", chunk.file},
          {"offset", chunk.offset},
          {"begin", chunk.box.begin},
          {"size", chunk.box.size},
          {"sha256", chunk.sha256}};
}

Chunk chunk_from(const json& entry) {
  return {.file = entry.at("file"),
          .offset = entry.at("offset"),
          .box = {entry.at("begin").get<Shape>(), entry.at("size").get<Shape>()},
          .sha256 = entry.at("sha256").get<std::vector<std::string>>()};
}

TensorEntry tensor_from(const std::string& name, const json& entry) {
  TensorEntry tensor{.kind = kind_of(entry.at("kind")),
                     .dtype = entry.at("dtype"),
                     .shape = entry.at("shape").get<Shape>()};
  if (element_bytes(tensor.dtype) == 0) throw Error("'" + name + "' has an unknown dtype");
  for (const json& item : entry.at("chunks")) {
    tensor.chunks.push_back(chunk_from(item));
    const Chunk& chunk = tensor.chunks.back();
    if (!contains(tensor.shape, chunk.box)) {
      throw Error("the box " + print(chunk.box) + " of '" + name + "' is not in " +
                  print(tensor.shape));
    }
    if (chunk.file.find('/') != std::string::npos) {
      throw Error("'" + name + "' is in a file of another folder: '" + chunk.file + "'");
    }
  }
  return tensor;
}

json document(const Manifest& m) {
  return {{"format", kFormat},
          {"version", kVersion},
          {"step", m.step},
          {"seed", m.seed},
          {"world", m.world},
          {"data",
           {{"fingerprint", m.data.fingerprint},
            {"next_sample", m.data.next_sample},
            {"global_batch", m.data.global_batch},
            {"seq_len", m.data.seq_len}}},
          {"config", m.config},
          {"config_sha256", m.config_sha256()},
          {"piece_bytes", m.piece_bytes},
          {"tensors", to_json(m.tensors)}};
}

Manifest manifest_from(const json& d) {
  const json& data = d.at("data");
  return {.step = d.at("step"),
          .seed = d.at("seed"),
          .world = d.at("world"),
          .data = {.fingerprint = data.at("fingerprint"),
                   .next_sample = data.at("next_sample"),
                   .global_batch = data.at("global_batch"),
                   .seq_len = data.at("seq_len")},
          .config = d.at("config"),
          .piece_bytes = d.at("piece_bytes"),
          .tensors = tensors_from_json(d.at("tensors"))};
}

void require_own_checksum(json& d) {
  const std::string declared = d.at(kChecksum);
  d.erase(kChecksum);
  if (sha256(d.dump()) != declared) throw Error("it does not match its own checksum");
}

void require_version(const json& d) {
  if (d.value("format", "") != kFormat) throw Error("it is no manifest of a checkpoint");
  const int version = d.at("version");
  if (version != kVersion) {
    throw Error("it has format version " + std::to_string(version) + "; this assay reads " +
                std::to_string(kVersion));
  }
}

}  // namespace

const char* name_of(TensorKind kind) {
  for (const auto& [candidate, text] : kKinds) {
    if (candidate == kind) return text;
  }
  return "unknown";
}

std::string Manifest::config_sha256() const { return sha256(config.dump()); }

int64_t Manifest::bytes() const {
  int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) {
    for (const Chunk& chunk : tensor.chunks) sum += chunk_bytes(tensor, chunk);
  }
  return sum;
}

int64_t chunk_bytes(const TensorEntry& tensor, const Chunk& chunk) {
  return volume(chunk.box) * static_cast<int64_t>(element_bytes(tensor.dtype));
}

json to_json(const std::map<std::string, TensorEntry>& tensors) {
  json out = json::object();
  for (const auto& [name, tensor] : tensors) {
    json chunks = json::array();
    for (const Chunk& chunk : tensor.chunks) chunks.push_back(chunk_json(chunk));
    out[name] = {{"kind", name_of(tensor.kind)},
                 {"dtype", tensor.dtype},
                 {"shape", tensor.shape},
                 {"chunks", std::move(chunks)}};
  }
  return out;
}

std::map<std::string, TensorEntry> tensors_from_json(const json& entries) {
  std::map<std::string, TensorEntry> tensors;
  for (const auto& [name, entry] : entries.items()) tensors[name] = tensor_from(name, entry);
  return tensors;
}

std::string print(const Manifest& manifest) {
  json d = document(manifest);
  d[kChecksum] = sha256(d.dump());
  return d.dump(1) + "\n";
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kManifestName;
  const std::string text = read_file(file);
  try {
    json d = json::parse(text);
    require_version(d);
    require_own_checksum(d);
    return manifest_from(d);
  } catch (const json::exception& error) {
    throw Error(file.string() + " is damaged: " + error.what(), "take another checkpoint");
  } catch (const Error& error) {
    throw Error(file.string() + ": " + error.what(), "take another checkpoint");
  }
}

}  // namespace assay::checkpoint
