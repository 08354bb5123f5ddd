// assay plugins: list, describe, check, new.
#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "assay/error.h"
#include "core/base/diagnostic.h"
#include "core/cli/commands.h"
#include "core/cli/context.h"
#include "core/cli/plugins_check.h"
#include "core/cli/plugins_new.h"
#include "core/cli/plugins_text.h"
#include "core/plugin/option_text.h"

namespace assay::cli {
namespace {

using nlohmann::json;

Catalogue load_catalogue(const Context& context) {
  return Catalogue::load(plugin_folders(context.plugin_path), worker_describer());
}

const Component& find_component(const Catalogue& catalogue, const std::string& id) {
  const auto [kind, name] = parse_component_id(id);
  if (const Component* component = catalogue.find(kind, name)) return *component;
  Diagnostic diagnostic = catalogue.unknown(kind, name);
  diagnostic.place = "command line";
  throw DiagnosticError(std::move(diagnostic));
}

void add_list(CLI::App& plugins, Context& context) {
  struct Arguments {
    std::string kind;
    bool all = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = plugins.add_subcommand("list", "Plugins that are found; opens none of them");
  command->add_option("--kind", arguments->kind, "Only components of this kind");
  command->add_flag("--all", arguments->all, "The whole text of each refusal");
  command->callback([arguments, &context] {
    ListOptions options{.all = arguments->all};
    if (!arguments->kind.empty()) options.kind = parse_component_id(arguments->kind + "/").first;
    const Catalogue catalogue = load_catalogue(context);
    *context.out << (context.json ? list_json(catalogue, options).dump(2) + "\n"
                                  : list_text(catalogue, options));
  });
}

OptionValues parse_settings(const Component& component, const std::vector<std::string>& settings) {
  OptionValues values;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) throw Error("--set wants key=value; got '" + setting + "'");
    const std::string key = setting.substr(0, equals);
    const OptionSpec* spec = component.option(key);
    if (!spec) unknown_option(key, component.options);
    values[spec->name] = parse_option(*spec, setting.substr(equals + 1));
  }
  return values;
}

constexpr int64_t kByteVocabulary = 256;  // where no data source says how many tokens there are

/// Facts of a model with these options; null for the other kinds.
json facts_of(const Catalogue& catalogue, const Component& component, const OptionValues& values) {
  if (component.kind != Kind::model) return nullptr;
  json options = json::object();
  for (const auto& [name, value] : values) options[name] = to_json(value);
  return catalogue.facts(component.kind, component.name, options, {{"vocab", kByteVocabulary}});
}

void add_describe(CLI::App& plugins, Context& context) {
  struct Arguments {
    std::string component;
    std::vector<std::string> settings;
    bool yaml = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = plugins.add_subcommand("describe", "Options, rules and facts of a component");
  command->add_option("component", arguments->component, "KIND/NAME")->required();
  command->add_option("--set", arguments->settings, "key=value of an option");
  command->add_flag("--yaml", arguments->yaml, "Only the lines for a study");
  command->callback([arguments, &context] {
    const Catalogue catalogue = load_catalogue(context);
    const Component& component = find_component(catalogue, arguments->component);
    const OptionValues values = parse_settings(component, arguments->settings);
    if (arguments->yaml) {
      *context.out << describe_yaml(component, values);
      return;
    }
    const json facts = facts_of(catalogue, component, values);
    if (context.json) {
      json document = to_json(component);
      document["facts"] = facts;
      *context.out << document.dump(2) << "\n";
    } else {
      *context.out << describe_text(component, facts);
    }
  });
}

void add_check(CLI::App& plugins, Context& context) {
  struct Arguments {
    std::string target;
    CheckOptions options;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      plugins.add_subcommand("check", "Conformance tests of a plugin, one process per test");
  command->add_option("target", arguments->target, "File or KIND/NAME")->required();
  command->add_option("--filter", arguments->options.filter, "Tests to run: optim/lion.*");
  command->add_flag("--list", arguments->options.list, "Names of the tests only");
  command->add_flag("--in-process", arguments->options.in_process, "All tests in one process");
  command->callback([arguments, &context] {
    std::filesystem::path file = arguments->target;
    if (!arguments->target.ends_with(".so")) {
      const Catalogue catalogue = load_catalogue(context);
      file = find_component(catalogue, arguments->target).file->path;
    }
    context.exit_code = check_plugin(file, arguments->options, *context.out, *context.err);
  });
}

void add_new(CLI::App& plugins, Context& context) {
  struct Arguments {
    std::string kind, name;
    std::filesystem::path folder;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = plugins.add_subcommand("new", "Writes a plugin that works, to start from");
  command->add_option("kind", arguments->kind, "model, parallel, memory, ...")->required();
  command->add_option("name", arguments->name, "lower_case")->required();
  command->add_option("--into", arguments->folder, "Folder to make (default: NAME)");
  command->callback([arguments, &context] {
    const Kind kind = parse_component_id(arguments->kind + "/").first;
    const std::filesystem::path folder =
        arguments->folder.empty() ? std::filesystem::path(arguments->name) : arguments->folder;
    for (const auto& file : new_plugin(kind, arguments->name, folder)) {
      *context.out << "wrote " << file.string() << "\n";
    }
    *context.out << "next: " << (folder / "README.md").string() << " says how to build it\n";
  });
}

}  // namespace

void add_plugins(CLI::App& app, Context& context) {
  CLI::App* plugins = app.add_subcommand("plugins", "Plugins: list, describe, check, new");
  plugins->require_subcommand(1);
  plugins->fallthrough();
  add_list(*plugins, context);
  add_describe(*plugins, context);
  add_check(*plugins, context);
  add_new(*plugins, context);
}

}  // namespace assay::cli
