// assay checkpoint {show,convert}: what a checkpoint holds and whether it is whole; its weights as
// one file. Needs no LibTorch.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "core/base/units.h"
#include "core/checkpoint/convert.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/verify.h"
#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/cli/table_text.h"

namespace assay::cli {
namespace {

using checkpoint::Chunk;
using checkpoint::Damage;
using checkpoint::Manifest;
using checkpoint::TensorEntry;
using nlohmann::json;

constexpr int kDamaged = 1;

struct Found {
  std::filesystem::path folder{};
  Manifest manifest{};
  std::vector<Damage> damage{};
};

int64_t tensor_bytes(const TensorEntry& tensor) {
  int64_t sum = 0;
  for (const Chunk& chunk : tensor.chunks) sum += checkpoint::chunk_bytes(tensor, chunk);
  return sum;
}

int64_t chunk_count(const Manifest& manifest) {
  int64_t count = 0;
  for (const auto& [name, tensor] : manifest.tensors) {
    count += static_cast<int64_t>(tensor.chunks.size());
  }
  return count;
}

json show_json(const Found& found) {
  const Manifest& m = found.manifest;
  json damage = json::array();
  for (const Damage& d : found.damage) {
    damage.push_back(
        {{"file", d.file}, {"tensor", d.tensor}, {"chunk", d.chunk}, {"what", d.what}});
  }
  return {{"schema_version", 1},
          {"folder", found.folder.string()},
          {"step", m.step},
          {"seed", m.seed},
          {"world", m.world},
          {"next_sample", m.data.next_sample},
          {"global_batch", m.data.global_batch},
          {"seq_len", m.data.seq_len},
          {"data_fingerprint", m.data.fingerprint},
          {"config_sha256", m.config_sha256()},
          {"bytes", m.bytes()},
          {"tensors", checkpoint::to_json(m.tensors)},
          {"damage", damage}};
}

/// "[0:128, 0:64] rank-00000", a line for each chunk.
store::Table tensor_table(const Manifest& manifest) {
  store::Table table;
  table.columns = {"tensor", "kind", "dtype", "shape", "bytes", "box", "file"};
  for (const auto& [name, tensor] : manifest.tensors) {
    bool first = true;
    for (const Chunk& chunk : tensor.chunks) {
      const auto once = [&](const std::string& text) { return store::Value(first ? text : ""); };
      table.rows.push_back({once(name), once(checkpoint::name_of(tensor.kind)), once(tensor.dtype),
                            once(checkpoint::print(tensor.shape)),
                            once(std::to_string(tensor_bytes(tensor))),
                            store::Value(checkpoint::print(chunk.box)), store::Value(chunk.file)});
      first = false;
    }
  }
  return table;
}

void print_text(const Found& found, std::ostream& out) {
  const Manifest& m = found.manifest;
  out << "checkpoint  " << found.folder.string() << "\n"
      << "step        " << m.step << " (" << m.data.next_sample << " sequences of "
      << m.data.seq_len << " tokens, " << m.data.global_batch << " a step)\n"
      << "written by  " << m.world << (m.world == 1 ? " rank" : " ranks") << ", seed " << m.seed
      << "\n"
      << "config      " << m.config_sha256() << "\n"
      << "data        " << m.data.fingerprint << "\n"
      << "holds       " << m.tensors.size() << " tensors, " << print_bytes(m.bytes()) << "\n\n"
      << table_text(tensor_table(m)) << "\n";
  for (const Damage& damage : found.damage) out << "damaged: " << print(damage) << "\n";
  if (found.damage.empty()) out << "all " << chunk_count(m) << " chunks match their checksums\n";
}

void show(const std::filesystem::path& path, Context& context) {
  Found found{.folder = checkpoint::find_checkpoint(path)};
  found.manifest = checkpoint::read_manifest(found.folder);
  found.damage = checkpoint::find_damage(found.folder);
  if (context.json) {
    *context.out << show_json(found).dump() << "\n";
  } else {
    print_text(found, *context.out);
  }
  if (!found.damage.empty()) context.exit_code = kDamaged;
}

void convert(const std::filesystem::path& path, const std::filesystem::path& file,
             const std::string& dtype, const Context& context) {
  checkpoint::Reader reader(checkpoint::find_checkpoint(path));
  const checkpoint::Converted done = checkpoint::convert(reader, file, dtype);
  if (context.json) {
    *context.out << json{{"schema_version", 1},
                         {"file", file.string()},
                         {"tensors", done.tensors},
                         {"bytes", done.bytes}}
                        .dump()
                 << "\n";
    return;
  }
  *context.out << "wrote " << file.string() << ": " << done.tensors << " tensors, "
               << print_bytes(done.bytes) << ", step " << reader.manifest().step << "\n";
}

}  // namespace

void add_checkpoint(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("checkpoint", "Look at a checkpoint, or convert it");
  command->require_subcommand(1);
  command->fallthrough();
  auto path = std::make_shared<std::filesystem::path>();
  auto file = std::make_shared<std::filesystem::path>();
  auto dtype = std::make_shared<std::string>();
  const auto add_path = [&](CLI::App* sub) {
    sub->add_option("dir", *path, "A checkpoint, a folder of them, or a run's folder (the newest)")
        ->required()
        ->type_name("DIR");
  };
  CLI::App* showing = command->add_subcommand(
      "show", "Step, tensors, boxes; checks every checksum (exit code 1 if one is wrong)");
  add_path(showing);
  showing->callback([path, &context] { show(*path, context); });
  CLI::App* converting =
      command->add_subcommand("convert", "Write the weights to one safetensors file");
  add_path(converting);
  converting->add_option("file", *file, "The file")->required()->type_name("OUT.safetensors");
  converting->add_option("--dtype", *dtype, "F64, F32 or BF16 (default: as stored)")
      ->type_name("DTYPE");
  converting->callback([path, file, dtype, &context] { convert(*path, *file, *dtype, context); });
  command->footer(R"(
Examples:
  assay checkpoint show results/runs/adamw--0123456789ab/r0.1
  assay checkpoint convert results/runs/adamw--0123456789ab/r0.1 model.safetensors --dtype BF16)");
}

}  // namespace assay::cli
