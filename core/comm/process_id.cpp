// Whether a process still runs, from /proc/PID/stat.
#include "assay/process_id.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace assay {
namespace {

struct Stat {
  char state = 'X';
  uint64_t start = 0;
};

Stat read_stat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');  // a process that ends meanwhile is a failed read, no exception
  const size_t name_end = text.rfind(')');  // the name may hold spaces and brackets
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  Stat stat;
  fields >> stat.state;
  std::string skipped;
  for (int field = 4; field <= 21; ++field) fields >> skipped;
  fields >> stat.start;
  return stat;
}

}  // namespace

ProcessId ProcessId::self() { return {.pid = getpid(), .start = read_stat(getpid()).start}; }

bool ProcessId::alive() const {
  const Stat stat = read_stat(pid);
  return stat.start == start && stat.state != 'Z' && stat.state != 'X';
}

}  // namespace assay
