// Options: one declaration gives specs, reading, and the texts of G14 and G15.
#include "assay/options.h"

#include <gtest/gtest.h>

#include <cmath>

namespace assay {
namespace {

struct Knobs {
  double beta = 0.9;
  int64_t bits = 8;
  bool fast = false;
  std::string mode = "auto";
  std::filesystem::path file = "a.txt";
  Bytes bucket{1 << 20};
  Duration wait{1'000'000'000};
  Count vocabulary{1000};
  std::vector<std::string> names{"x"};

  static void declare(OptionTable<Knobs>& t) {
    using enum Affects;
    t.add(&Knobs::beta, "beta", numerics, {0, 1}, "momentum").aliases = {"momentum"};
    t.add(&Knobs::bits, "bits", numerics, {1}, "width");
    t.add(&Knobs::fast, "fast", speed, "skip checks");
    t.add(&Knobs::mode, "mode", memory, {"auto", "keep", "drop"}, "what to do");
    t.add(&Knobs::file, "file", numerics, "input");
    t.add(&Knobs::bucket, "bucket", speed, "bucket size");
    t.add(&Knobs::wait, "wait", speed, "patience");
    t.add(&Knobs::vocabulary, "vocabulary", numerics, "words");
    t.add(&Knobs::names, "names", numerics, "names");
  }
};

OptionTable<Knobs> table() {
  OptionTable<Knobs> t;
  Knobs::declare(t);
  return t;
}

std::string refusal(const OptionValues& values) {
  try {
    table().read(values);
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Options, SpecsFollowFromTheFields) {
  const auto t = table();
  ASSERT_EQ(t.specs().size(), 9u);
  const char* types[] = {"float", "int",      "bool",  "enum", "path",
                         "bytes", "duration", "count", "list"};
  for (size_t i = 0; i < 9; ++i) EXPECT_STREQ(name_of(t.specs()[i].type), types[i]);
  EXPECT_EQ(std::get<double>(t.specs()[0].default_value), 0.9);
  EXPECT_EQ(std::get<int64_t>(t.specs()[5].default_value), 1 << 20);
  EXPECT_STREQ(name_of(t.specs()[2].affects), "speed");
  EXPECT_EQ(t.specs()[3].choices.size(), 3u);
}

TEST(Options, ReadsDefaultsAliasesAndEveryType) {
  const Knobs defaults = table().read({});
  EXPECT_EQ(defaults.beta, 0.9);
  const Knobs k = table().read({{"momentum", 0.5},
                                {"bits", int64_t{4}},
                                {"fast", true},
                                {"mode", std::string("keep")},
                                {"file", std::string("/b")},
                                {"bucket", int64_t{7}},
                                {"wait", int64_t{9}},
                                {"vocabulary", int64_t{11}},
                                {"names", std::vector<std::string>{"y", "z"}}});
  EXPECT_EQ(k.beta, 0.5);
  EXPECT_EQ(k.bits, 4);
  EXPECT_TRUE(k.fast);
  EXPECT_EQ(k.mode, "keep");
  EXPECT_EQ(k.file, "/b");
  EXPECT_EQ(k.bucket.value, 7);
  EXPECT_EQ(k.wait.nanoseconds, 9);
  EXPECT_EQ(k.vocabulary.value, 11);
  EXPECT_EQ(k.names.size(), 2u);
  EXPECT_EQ(table().read({{"beta", int64_t{1}}}).beta, 1.0) << "a whole number is a number";
}

TEST(Options, RefusalsSayWhatIsAllowed) {
  EXPECT_EQ(refusal({{"beta", 12.0}}), "'beta' must be in [0, 1]; got '12'");
  EXPECT_EQ(refusal({{"beta", std::nan("")}}), "'beta' must be in [0, 1]; got 'nan'");
  EXPECT_EQ(refusal({{"bits", int64_t{0}}}), "'bits' must be a whole number >= 1; got '0'");
  EXPECT_EQ(refusal({{"bits", 1.5}}), "'bits' must be a whole number >= 1; got '1.5'");
  EXPECT_EQ(refusal({{"mode", std::string("kep")}}),
            "'mode' must be one of auto, keep, drop; got 'kep'. Did you mean 'keep'?");
  EXPECT_EQ(refusal({{"mode", std::string("zzzzzz")}}),
            "'mode' must be one of auto, keep, drop; got 'zzzzzz'");
  EXPECT_EQ(refusal({{"fast", int64_t{1}}}), "'fast' must be true or false; got '1'");
  EXPECT_EQ(refusal({{"names", true}}), "'names' must be a list of texts; got 'true'");
  EXPECT_EQ(refusal({{"bucket", std::string("64")}}),
            "'bucket' must be a size with a unit, such as 64MiB; got '64'");
  EXPECT_EQ(refusal({{"betas", 1.0}}), "unknown option 'betas'");
}

TEST(Options, AnUnknownNameGetsTheNearest) {
  const auto hint = [](const std::string& name) -> std::string {
    try {
      table().read({{name, 1.0}});
    } catch (const Error& e) {
      return e.hint();
    }
    return "accepted";
  };
  EXPECT_EQ(hint("bett"), "did you mean 'beta'?");
  EXPECT_EQ(hint("zzz").substr(0, 30), "its options: beta, bits, fast,");
}

TEST(Options, ARequiredOptionMustBeGiven) {
  OptionTable<Knobs> t;
  t.add(&Knobs::file, "file", Affects::numerics, "the corpus").required = true;
  EXPECT_THROW(t.read({}), Error);
  EXPECT_EQ(t.read({{"file", std::string("x")}}).file, "x");
}

}  // namespace
}  // namespace assay
