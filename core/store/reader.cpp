// Reader: a read-only connection, and the lookup of studies by name.
#include "core/store/reader.h"

#include "assay/error.h"
#include "core/base/nearest.h"
#include "core/store/connection.h"

namespace assay::store {
namespace {

constexpr const char* kStudies =
    "SELECT study_id, name, created_us, (SELECT count(*) FROM study_cells c WHERE"
    " c.study_id=s.study_id) cells, yaml_sha256, resolved_json, nuisance_json FROM studies s"
    " WHERE study_id=(SELECT study_id FROM studies t WHERE t.name=s.name"
    "  ORDER BY created_us DESC, study_id DESC LIMIT 1) ORDER BY created_us DESC, study_id DESC";

}  // namespace

Reader::Reader(const std::filesystem::path& file)
    : file_(file), connection_(std::make_unique<Connection>(Connection::reader(file))) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

Table Reader::query(const std::string& sql, std::span<const Value> parameters) const {
  return store::query(*connection_, sql, parameters, timeout_s_);
}

Table Reader::query(const std::string& sql, std::initializer_list<Value> parameters) const {
  return query(sql, std::span<const Value>(parameters.begin(), parameters.size()));
}

void Reader::set_timeout(double seconds) { timeout_s_ = seconds; }

std::vector<StudyInfo> Reader::studies() const {
  const Table table = query(kStudies);
  std::vector<StudyInfo> result;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    result.push_back({.study_id = *integer(table.at(i, "study_id")),
                      .name = *text(table.at(i, "name")),
                      .created_us = *integer(table.at(i, "created_us")),
                      .cells = *integer(table.at(i, "cells")),
                      .yaml_sha256 = *text(table.at(i, "yaml_sha256")),
                      .resolved_json = *text(table.at(i, "resolved_json")),
                      .nuisance_json = *text(table.at(i, "nuisance_json"))});
  }
  return result;
}

StudyInfo Reader::study(const std::string& name) const {
  std::vector<std::string> names;
  for (StudyInfo& study : studies()) {
    if (study.name == name) return study;
    names.push_back(study.name);
  }
  if (names.empty()) return newest_study();  // throws: no study at all
  const std::vector<std::string> near = nearest(name, names);
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "'" : ", '") + other + "'";
  throw Error("there is no study '" + name + "' in '" + file_.string() + "'",
              near.empty() ? "studies there: " + known : did_you_mean(near));
}

StudyInfo Reader::newest_study() const {
  std::vector<StudyInfo> all = studies();
  if (!all.empty()) return std::move(all.front());
  throw Error("the results database '" + file_.string() + "' holds no study yet",
              "start one: assay run STUDY.yaml");
}

}  // namespace assay::store
