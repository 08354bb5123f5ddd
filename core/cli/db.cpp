// assay db {check,info,migrate,merge}: care of the results database.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "core/base/units.h"
#include "core/cli/commands.h"
#include "core/cli/view.h"
#include "core/store/check.h"
#include "core/store/merge.h"
#include "core/store/schema.h"

namespace assay::cli {
namespace {

using store::integer;
using store::text;

constexpr int kDamaged = 4;

void check(Context& context) {
  const std::vector<std::string> damage = store::find_damage(context.database);
  if (context.json) {
    *context.out << nlohmann::json{{"schema_version", 1}, {"damage", damage}}.dump() << "\n";
  } else {
    for (const std::string& line : damage) *context.out << line << "\n";
    if (damage.empty()) *context.out << "'" << context.database.string() << "' is sound\n";
  }
  if (!damage.empty()) context.exit_code = kDamaged;
}

int64_t size_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

void info(const Context& context) {
  const store::Reader reader(context.database);
  const auto count = [&](const std::string& table) {
    return *integer(reader.query("SELECT count(*) FROM " + table).rows.at(0)[0]);
  };
  nlohmann::ordered_json facts = {{"schema_version", 1}, {"file", context.database.string()}};
  facts["bytes"] = size_of(context.database);
  facts["log_bytes"] = size_of(context.database.string() + "-wal");
  facts["user_version"] = integer(reader.query("PRAGMA user_version").rows.at(0)[0]).value_or(0);
  const store::Table meta = reader.query("SELECT key, value FROM meta ORDER BY key");
  for (size_t i = 0; i < meta.rows.size(); ++i) {
    facts[*text(meta.at(i, "key"))] = *text(meta.at(i, "value"));
  }
  for (const char* table :
       {"studies", "cells", "runs", "attempts", "steps", "samples", "metrics"}) {
    facts[table] = count(table);
  }
  if (context.json) {
    *context.out << facts.dump() << "\n";
    return;
  }
  facts.erase("schema_version");
  for (const auto& [key, value] : facts.items()) {
    *context.out << key << std::string(14 - std::min<size_t>(key.size(), 13), ' ')
                 << (value.is_string() ? value.get<std::string>() : value.dump());
    if (key.ends_with("bytes")) *context.out << "  (" << print_bytes(value.get<int64_t>()) << ")";
    *context.out << "\n";
  }
}

void migrate(const Context& context) {
  const store::MigrationResult result = store::migrate(context.database);
  if (context.json) {
    *context.out << nlohmann::json{{"schema_version", 1},
                                   {"from", result.from},
                                   {"to", result.to},
                                   {"backup", result.backup.string()}}
                        .dump()
                 << "\n";
  } else if (result.from == result.to) {
    *context.out << "'" << context.database.string() << "' has version " << result.to
                 << ", the newest: nothing to do\n";
  } else {
    *context.out << "'" << context.database.string() << "' went from version " << result.from
                 << " to " << result.to << "; the old file is '" << result.backup.string() << "'\n";
  }
}

void merge(const std::filesystem::path& other, const std::string& study, const Context& context) {
  store::Store into(context.database);
  const store::MergeResult result =
      store::merge(into, other, study.empty() ? std::nullopt : std::optional(study));
  into.checkpoint();
  if (context.json) {
    *context.out
        << nlohmann::json{{"schema_version", 1},           {"studies", result.studies},
                          {"cells", result.cells},         {"runs", result.runs},
                          {"runs_kept", result.runs_kept}, {"runs_left_out", result.runs_left_out},
                          {"steps", result.steps},         {"comparisons", result.comparisons},
                          {"pairs", result.pairs}}
               .dump()
        << "\n";
    return;
  }
  *context.out << result.studies << " studies, " << result.cells << " cells; " << result.runs
               << " runs with " << result.steps << " steps taken, " << result.runs_kept
               << " were here already";
  if (result.comparisons > 0) {
    *context.out << "; " << result.comparisons << " comparisons, " << result.pairs << " new pairs";
  }
  *context.out << "\n";
  if (result.runs_left_out > 0) {
    *context.err << result.runs_left_out
                 << " ended runs were left out: of pairs of another machine, of pairs that have"
                    " begun here, or of pairs that are not whole there. Keep that file.\n";
  }
}

}  // namespace

void add_db(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("db", "Check, describe, migrate or merge the database");
  command->require_subcommand(1);
  command->fallthrough();
  command->add_subcommand("check", "Look for damage and lost rows (exit code 4 if there is any)")
      ->callback([&context] { check(context); });
  command->add_subcommand("info", "Size, version, row counts")->callback([&context] {
    info(context);
  });
  command->add_subcommand("migrate", "Bring an older file to this version, keeping a backup")
      ->callback([&context] { migrate(context); });
  auto other = std::make_shared<std::filesystem::path>();
  auto study = std::make_shared<std::string>();
  CLI::App* merging =
      command->add_subcommand("merge", "Take ended runs and comparisons of another database");
  merging->add_option("file", *other, "The other database")->required()->type_name("FILE");
  merging->add_option("--study", *study, "This study alone")->type_name("NAME");
  merging->callback([other, study, &context] { merge(*other, *study, context); });
  command->footer(R"(
Examples:
  assay db check
  assay db merge /mnt/laptop/assay.db --study quickstart)");
}

}  // namespace assay::cli
