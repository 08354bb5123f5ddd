// What holds for every component, whatever its kind.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/rand.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/conformance/elf_file.h"
#include "core/conformance/instance.h"
#include "core/conformance/subject.h"
#include "core/grid/expression.h"
#include "core/intercept/host_allocator.h"
#include "core/plugin/component.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

Component as_component(const Subject& s) {
  Component component;
  static_cast<Manifest&>(component) = s.entry->manifest;
  component.kind = s.entry->kind;
  component.options = s.entry->options;
  return component;
}

void loads_quietly(const Subject&) {
  const LoadRecord& record = load_record();
  EXPECT_EQ(record.printed, "") << "registration printed on standard output";
  EXPECT_EQ(record.after.threads, record.before.threads) << "registration started a thread";
  EXPECT_EQ(record.after.mxcsr, record.before.mxcsr)
      << "loading changed MXCSR: -ffast-math on the link line turns on FTZ and DAZ";
  EXPECT_TRUE(record.after == record.before) << "registration changed grad mode, default dtype or "
                                                "the number of threads";
}

void exports_only_its_door(const Subject& s) {
  const ElfFile elf = read_elf(s.plugin->file);
  EXPECT_EQ(elf.exports, std::vector<std::string>{"assay_plugin_v1"});
  EXPECT_TRUE(elf.stays) << "link it with -z nodelete";
  EXPECT_FALSE(elf.run_path) << "no RPATH: names bind to the worker's copies";
  for (const std::string& library : elf.needed) {
    const bool cuda = library.find("cuda") != std::string::npos;
    EXPECT_TRUE(!cuda || s.plugin->note.cuda != "none")
        << library << " is needed, but the note says cuda: none";
  }
}

void describes_itself(const Subject& s) {
  const Component component = as_component(s);
  const json written = to_json(component);
  EXPECT_EQ(to_json(component_from_json(json::parse(written.dump()))), written);
  EXPECT_FALSE(component.summary.empty()) << "a summary of one line";
  EXPECT_EQ(component.summary.find('\n'), std::string::npos);
  for (const OptionSpec& spec : component.options) {
    EXPECT_FALSE(spec.doc.empty()) << "option '" << spec.name << "' says nothing of itself";
  }
}

bool is_known_root(const std::string& name) {
  static const std::set<std::string> roots{
      "model", "data",  "mesh", "parallel", "memory", "precision", "optim", "compile", "comm",
      "train", "facts", "seed", "run",      "device", "arch",      "cpu",   "world",   "dtype",
      "param", "grad",  "meta", "shard",    "graph",  "bitwise",   "resume"};
  return roots.contains(name.substr(0, name.find('.')));
}

void rules_can_be_judged(const Subject& s) {
  const Component component = as_component(s);
  for (const Rule& rule : component.rules) {
    try {
      const auto expression = grid::Expression::compile(rule.expression);
      for (const auto& name : expression.names()) {
        const bool own = component.option(name.text) != nullptr;
        EXPECT_TRUE(own || (name.text.find('.') != std::string::npos && is_known_root(name.text)))
            << rule.id << " names '" << name.text << "', which is no key, option or fact";
      }
    } catch (const grid::ExpressionError& e) {
      ADD_FAILURE() << rule.id << " does not parse: " << e.what();
    }
  }
}

void defaults_are_valid(const Subject& s) {
  if (!s.defaults()) GTEST_SKIP() << "a required option has no value that could be guessed";
  EXPECT_NO_THROW(make_instance(s, *s.defaults()));
}

void refuses_wrong_options(const Subject& s) {
  const OptionValues values = s.defaults().value_or(OptionValues{});
  OptionValues unknown = values;
  unknown["no_such_option"] = true;
  EXPECT_THROW(make_instance(s, unknown), Error);
  for (const OptionSpec& spec : s.entry->options) {
    OptionValues bad = values;
    if (spec.type == OptionType::choice) {
      bad[spec.name] = std::string("no such choice");
    } else if (std::isfinite(spec.range.high)) {
      bad[spec.name] = spec.type == OptionType::real
                           ? OptionValue(spec.range.high + 1)
                           : OptionValue(static_cast<int64_t>(spec.range.high) + 1);
    } else if (std::isfinite(spec.range.low)) {
      bad[spec.name] = spec.type == OptionType::real
                           ? OptionValue(spec.range.low - 1)
                           : OptionValue(static_cast<int64_t>(spec.range.low) - 1);
    } else {
      continue;
    }
    EXPECT_THROW(make_instance(s, bad), Error) << "option '" << spec.name << "'";
  }
}

void instances_come_and_go(const Subject& s) {
  if (!s.defaults()) GTEST_SKIP() << "a required option has no value that could be guessed";
  if (s.entry->kind == Kind::comm) GTEST_SKIP() << "a backend connects in the comm suite";
  const auto kept = make_instance(s, *s.defaults());
  make_instance(s, *s.defaults()).reset();  // caches of the first use are no leak
  const ProcessState before = process_state();
  const int64_t bytes = intercept::host_memory().allocated_bytes;
  for (int i = 0; i < 100; ++i) make_instance(s, *s.defaults());
  EXPECT_EQ(intercept::host_memory().allocated_bytes, bytes) << "tensors are left";
  EXPECT_TRUE(process_state() == before) << "threads, grad mode, default dtype or MXCSR changed";
}

void construction_draws_no_random_numbers(const Subject& s) {
  if (!s.defaults()) GTEST_SKIP() << "a required option has no value that could be guessed";
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  generator.set_current_seed(7);
  const double expected = at::rand({1}).item<double>();
  generator.set_current_seed(7);
  make_instance(s, *s.defaults());
  EXPECT_EQ(at::rand({1}).item<double>(), expected);
}

void operators_have_meta_kernels(const Subject& s) {
  const auto& spaces = s.plugin->note.op_namespaces;
  if (spaces.empty()) GTEST_SKIP() << "the plugin owns no operators";
  int operators = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto space = name.getNamespace();
    if (!space || std::find(spaces.begin(), spaces.end(), std::string(*space)) == spaces.end()) {
      continue;
    }
    ++operators;
    const auto handle = c10::Dispatcher::singleton().findOp(name);
    ASSERT_TRUE(handle.has_value());
    EXPECT_TRUE(handle->hasKernelForDispatchKey(c10::DispatchKey::CPU)) << name.name;
    EXPECT_TRUE(handle->hasKernelForDispatchKey(c10::DispatchKey::Meta))
        << name.name << " has no Meta kernel: dry runs and capture would stop at it";
  }
  EXPECT_GT(operators, 0) << "the note names operator namespaces that hold nothing";
}

}  // namespace

std::vector<Case> common_cases() {
  return {{{}, "LoadsQuietly", loads_quietly},
          {{}, "ExportsOnlyItsDoor", exports_only_its_door},
          {{}, "DescribesItself", describes_itself},
          {{}, "RulesCanBeJudged", rules_can_be_judged},
          {{}, "DefaultsAreValid", defaults_are_valid},
          {{}, "RefusesWrongOptions", refuses_wrong_options},
          {{}, "InstancesComeAndGo", instances_come_and_go},
          {{}, "ConstructionDrawsNoRandomNumbers", construction_draws_no_random_numbers},
          {{}, "OperatorsHaveMetaKernels", operators_have_meta_kernels}};
}

}  // namespace assay::conformance
