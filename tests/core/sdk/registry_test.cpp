// The registry: components by name, options through their table, every error with its component.
#include "assay/registry.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include "assay/optimizer.h"
#include "assay/precision.h"

namespace assay {
namespace {

struct RuleOptions {
  double beta = 0.9;
  std::string fault = "none";

  static void declare(OptionTable<RuleOptions>& t) {
    t.add(&RuleOptions::beta, "beta", Affects::numerics, {0, 1}, "momentum");
    t.add(&RuleOptions::fault, "fault", Affects::numerics, "what to throw");
  }
};

class Rule2 final : public Optimizer {
 public:
  using Options = RuleOptions;
  explicit Rule2(const Options& options) : beta(options.beta) {
    if (options.fault == "error") throw Error("no such device", "plug it in");
    if (options.fault == "invalid") throw InvalidRun("not finite");
    if (options.fault == "infra") throw InfrastructureError("no peer");
    if (options.fault == "c10") TORCH_CHECK(false, "shapes differ");
    if (options.fault == "std") throw std::out_of_range("index 7");
    if (options.fault == "int") throw 7;
  }
  void step(std::span<ParameterShard>, const StepContext&) override {}
  const double beta;
};

class Plain final : public Precision {
 public:
  Dtypes dtypes() const override { return {}; }
};

Registry filled() {
  Registrar registrar("lab");
  registrar.add<Rule2>({.name = "rule", .summary = "a rule", .default_lr = 0.1});
  registrar.add<Plain>({.name = "plain", .summary = "fp32"});
  Registry registry;
  registry.add(registrar.entries());
  return registry;
}

TEST(Registry, MakesComponentsFromOptions) {
  const Registry registry = filled();
  const auto made = registry.create<Optimizer>("rule", {{"beta", 0.5}});
  EXPECT_EQ(dynamic_cast<Rule2&>(*made).beta, 0.5);
  EXPECT_NE(registry.create<Precision>("plain"), nullptr);
  EXPECT_THROW(registry.create<Precision>("plain", {{"anything", true}}), Error);
  EXPECT_EQ(registry.find(Kind::optim, "rule")->plugin, "lab");
  EXPECT_EQ(registry.find(Kind::precision, "rule"), nullptr) << "names are unique in their kind";
}

TEST(Registry, ListsByKindThenName) {
  const Registry registry = filled();
  ASSERT_EQ(registry.entries().size(), 2u);
  EXPECT_EQ(registry.entries()[0]->id(), "precision/plain");
  EXPECT_EQ(registry.entries()[1]->id(), "optim/rule");
}

TEST(Registry, AnUnknownNameGetsTheNearest) {
  try {
    filled().create<Optimizer>("rulle");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "no component optim/rulle in the loaded plugins");
    EXPECT_EQ(e.hint(), "did you mean 'optim/rule'?");
  }
}

template <class Thrown>
std::string thrown_by(const std::string& fault) {
  try {
    filled().create<Optimizer>("rule", {{"fault", fault}});
  } catch (const Thrown& e) {
    return e.what();
  } catch (...) {
    return "another type";
  }
  return "nothing";
}

TEST(Registry, ErrorsNameTheComponentAndKeepTheirType) {
  EXPECT_EQ(thrown_by<Error>("error"), "optim/rule: no such device");
  EXPECT_EQ(thrown_by<InvalidRun>("invalid"), "optim/rule: not finite");
  EXPECT_EQ(thrown_by<InfrastructureError>("infra"), "optim/rule: no peer");
  EXPECT_EQ(thrown_by<Error>("c10"), "optim/rule: shapes differ");
  EXPECT_EQ(thrown_by<Error>("std"), "optim/rule: index 7");
  EXPECT_EQ(thrown_by<Error>("int"), "optim/rule: threw something that is no std::exception");
  try {
    filled().create<Optimizer>("rule", {{"beta", 2.0}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "optim/rule: 'beta' must be in [0, 1]; got '2'");
  }
}

TEST(Registry, RefusesASecondOwnerAndLatecomers) {
  Registry registry = filled();
  Registrar other("other");
  other.add<Rule2>({.name = "rule", .summary = "again", .default_lr = 0.1});
  EXPECT_THROW(registry.add(other.entries()), Error);
  registry.freeze();
  EXPECT_THROW(registry.add({}), std::logic_error);
}

template <class T>
std::string refused(Manifest manifest) {
  try {
    Registrar("lab").add<T>(std::move(manifest));
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Registrar, ChecksEveryManifest) {
  EXPECT_EQ(refused<Rule2>({.name = "Rule", .default_lr = 1}),
            "'Rule' is no component name: [a-z][a-z0-9_]*");
  EXPECT_EQ(refused<Rule2>({.name = "rule"}), "optim/rule declares no default_lr above 0");
  EXPECT_EQ(refused<Rule2>({.name = "rule", .default_lr = -1}),
            "optim/rule declares no default_lr above 0");
  EXPECT_EQ(refused<Plain>({.name = "plain", .default_lr = 1}),
            "precision/plain declares default_lr, which only optim/ has");
  EXPECT_EQ(refused<Plain>({.name = "plain", .needs = {"device.cpux"}}),
            "precision/plain names an unknown capability 'device.cpux'");
  EXPECT_EQ(refused<Plain>({.name = "plain", .conflicts = {{"offload", "x"}}}),
            "precision/plain: conflict with 'offload' needs KIND/NAME and a reason");
  EXPECT_EQ(refused<Plain>({.name = "plain", .dims = {"tp"}}),
            "precision/plain names mesh dimensions, which only parallel/ has");
  EXPECT_EQ(refused<Plain>({.name = "plain", .provides = {"meta.safe"}}), "accepted");
}

struct ReservedOptions {
  double lr = 1;
  static void declare(OptionTable<ReservedOptions>& t) {
    t.add(&ReservedOptions::lr, "lr", Affects::numerics, "the host's");
  }
};
class Reserved final : public Optimizer {
 public:
  using Options = ReservedOptions;
  explicit Reserved(const Options&) {}
  void step(std::span<ParameterShard>, const StepContext&) override {}
};

TEST(Registrar, RefusesTheHostsOptionNames) {
  EXPECT_EQ(refused<Reserved>({.name = "rule", .default_lr = 1}),
            "optim/rule: option 'lr' is declared twice or is the host's");
}

}  // namespace
}  // namespace assay
