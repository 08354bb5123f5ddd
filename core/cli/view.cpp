// Terminal size, ages, and the choice of a study.
#include "core/cli/view.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

namespace assay::cli {
namespace {

constexpr int kWidthWithoutTerminal = 100;
constexpr int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute,
                  kDay = 24 * kHour;

}  // namespace

bool terminal_on_stdout() { return isatty(STDOUT_FILENO) == 1; }

int terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kWidthWithoutTerminal;
}

std::string print_age(int64_t us, int64_t now_us) {
  const int64_t age = std::max<int64_t>(now_us - us, 0);
  if (age < 2 * kMinute) return std::to_string(age / kSecond) + " s ago";
  if (age < 2 * kHour) return std::to_string(age / kMinute) + " min ago";
  if (age < 2 * kDay) return std::to_string(age / kHour) + " h ago";
  return std::to_string(age / kDay) + " days ago";
}

void add_study_argument(CLI::App& command, std::string& study) {
  command.add_option("study", study, "Name of the study (default: the newest)");
}

std::string database_flag(const Context& context) {
  if (context.database == Context{}.database) return "";
  return " --db " + context.database.string();
}

store::StudyInfo chosen_study(const store::Reader& reader, const std::string& name) {
  return name.empty() ? reader.newest_study() : reader.study(name);
}

}  // namespace assay::cli
