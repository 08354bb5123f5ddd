// Faults of a plugin, by name: what `fake.behaviour` of a cell asks for.
#pragma once

#include <filesystem>
#include <string>

namespace assay::fake {

/// Commits the fault; comes back only from those that let training go on ("rubbish", "slow", ...).
/// ok crash abort throw throw_int hang stopped exit3 exit0 rubbish eat_memory torn_spool
/// damaged_spool nan infra orphan deaf
void commit(const std::string& behaviour, const std::filesystem::path& spool);

}  // namespace assay::fake
