// The rows of the collectives table, collected while a group is used.
#include "core/comm/ledger.h"

#include <algorithm>

namespace assay {

size_t Communicator::Ledger::count(Collective op, const std::string& dtype, int64_t payload_bytes,
                                   int64_t wire_numerator) {
  const std::string& phase = PhaseScope::current();
  auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) {
    return r.op == op && r.dtype == dtype && r.phase == phase;
  });
  if (row == rows_.end()) row = rows_.insert(row, {.op = op, .dtype = dtype, .phase = phase});
  ++row->count;
  row->payload_bytes += payload_bytes;
  row->wire_numerator += wire_numerator;
  return static_cast<size_t>(row - rows_.begin());
}

void Communicator::Ledger::add_seconds(size_t row, double total_s, double exposed_s) {
  if (row >= rows_.size()) return;  // reset while the call was under way
  rows_[row].total_s += total_s;
  rows_[row].exposed_s += exposed_s;
  if (rows_[row].phase != "control") exposed_s_ += exposed_s;
}

std::vector<Traffic> Communicator::Ledger::rows() const {
  std::vector<Traffic> result;
  if (size_ == 1) return result;  // copies, not traffic
  for (const Row& row : rows_) {
    result.push_back({.group = group_,
                      .op = name_of(row.op),
                      .dtype = row.dtype,
                      .phase = row.phase,
                      .count = row.count,
                      .payload_bytes = row.payload_bytes,
                      .wire_bytes = row.wire_numerator / size_,
                      .total_s = row.total_s,
                      .exposed_s = row.exposed_s});
  }
  return result;
}

void Communicator::Ledger::reset() {
  rows_.clear();
  exposed_s_ = 0;
}

}  // namespace assay
