// Reads the two fields of /proc/PID/stat that tell a process from a later one of its number.
#include "core/base/process_stat.h"

#include <fstream>
#include <sstream>
#include <string>

namespace assay {

ProcessStat process_stat(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');           // a failed read leaves no text, no exception
  const size_t name_end = text.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field <= 21; ++field) fields >> skipped;
  fields >> stat.start;
  return fields ? stat : ProcessStat{};
}

}  // namespace assay
