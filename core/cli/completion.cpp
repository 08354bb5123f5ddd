// assay completion SHELL: a script that asks the hidden `assay __complete`, which walks the
// commands as they are registered; nothing is listed by hand.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <set>

#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/grid/host_keys.h"

namespace assay::cli {
namespace {

constexpr const char* kBash = R"(_assay() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do COMPREPLY+=("$line"); done \
    < <(assay __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}
complete -o default -F _assay assay
)";

constexpr const char* kZsh = R"(#compdef assay
_assay() {
  local -a found
  found=("${(@f)$(assay __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if (( ${#found} )) && [[ -n ${found[1]} ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _assay assay
)";

constexpr const char* kFish = R"(complete -c assay -f -a \
  '(assay __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
complete -c assay -F
)";

const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

/// Flags of the command and of those above it, for global flags may stand anywhere.
std::vector<const CLI::Option*> flags_of(const CLI::App& command) {
  std::vector<const CLI::Option*> flags;
  for (const CLI::App* level = &command; level; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options()) {
      if (!option->get_lnames().empty()) flags.push_back(option);
    }
  }
  return flags;
}

const CLI::Option* flag_named(const CLI::App& command, const std::string& word) {
  for (const CLI::Option* option : flags_of(command)) {
    if (word.starts_with("--") && option->check_lname(word.substr(2))) return option;
  }
  return nullptr;
}

/// Words that may follow; files are the shell's own business.
std::set<std::string> choices(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* command = &root;
  const CLI::Option* waiting = nullptr;  // a flag whose value comes next
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const CLI::App* next = waiting ? nullptr : subcommand(*command, words[i]);
    if (next) command = next;
    const CLI::Option* flag = waiting ? nullptr : flag_named(*command, words[i]);
    waiting = flag && flag->get_items_expected_max() > 0 ? flag : nullptr;
  }
  std::set<std::string> found;
  if (waiting) {
    if (!waiting->check_lname("set")) return found;
    for (const OptionSpec& spec : grid::host_keys()) found.insert(spec.name + "=");
    return found;
  }
  if (!words.empty() && words.back().starts_with("-")) {
    for (const CLI::Option* option : flags_of(*command)) {
      for (const std::string& name : option->get_lnames()) found.insert("--" + name);
    }
    return found;
  }
  for (const CLI::App* c : command->get_subcommands([](const CLI::App*) { return true; })) {
    if (!c->get_group().empty()) found.insert(c->get_name());
  }
  return found;
}

}  // namespace

void complete(const CLI::App& root, std::vector<std::string> words, std::ostream& out) {
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  const std::string prefix = words.empty() ? "" : words.back();
  for (const std::string& word : choices(root, words)) {
    if (word.starts_with(prefix)) out << word << "\n";
  }
}

void add_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->type_name("SHELL");
  command->footer(R"(
Examples:
  source <(assay completion bash)
  assay completion fish > ~/.config/fish/completions/assay.fish)");
  command->callback([shell, &context] {
    const std::map<std::string, const char*> scripts = {
        {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
    *context.out << scripts.at(*shell);
  });
}

}  // namespace assay::cli
