// Options: a component declares its options once, from its own struct; YAML reading, defaults,
// validation, `assay plugins describe` and the linter all come from that one declaration.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "assay/api.h"
#include "assay/error.h"

namespace assay {

/// What a change of an option may change: any bit; the same bits but another peak; time alone.
enum class Affects { numerics, memory, speed };

enum class OptionType { boolean, integer, real, text, choice, path, bytes, duration, count, list };

/// Strong types, so that the declared type follows from the field.
struct Bytes {
  int64_t value = 0;
};
struct Duration {
  int64_t nanoseconds = 0;
};
struct Count {  ///< written as 250k, 10M, 1G
  int64_t value = 0;
};

/// bytes in bytes, durations in nanoseconds, counts as integers.
using OptionValue = std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;
using OptionValues = std::map<std::string, OptionValue>;

/// Closed interval by default; `{0, 1}` is [0, 1].
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

struct OptionSpec {
  std::string name{};
  OptionType type = OptionType::text;
  OptionValue default_value{};
  bool required = false;
  std::string unit{};
  Range range{};
  std::vector<std::string> choices{};
  std::string doc{};
  std::vector<std::string> aliases{};
  Affects affects = Affects::numerics;
};

ASSAY_API const char* name_of(OptionType type);
ASSAY_API const char* name_of(Affects affects);

/// Throws Error with the text of G14 / G15 (without place) if the value is not allowed.
ASSAY_API void check_option(const OptionSpec& spec, const OptionValue& value);

/// Throws Error for a name that none of `specs` has; its hint is the nearest names.
[[noreturn]] ASSAY_API void unknown_option(const std::string& name,
                                           const std::vector<OptionSpec>& specs);

template <class Struct>
class OptionTable {
 public:
  /// A numeric or boolean field; `range` is ignored for bool.
  template <class Field>
  OptionSpec& add(Field Struct::*field, std::string name, Affects affects, Range range,
                  std::string doc) {
    OptionSpec& spec = add(field, std::move(name), affects, std::move(doc));
    spec.range = range;
    return spec;
  }

  template <class Field>
  OptionSpec& add(Field Struct::*field, std::string name, Affects affects, std::string doc) {
    OptionSpec spec;
    spec.name = std::move(name);
    spec.affects = affects;
    spec.doc = std::move(doc);
    spec.type = type_of(static_cast<Field*>(nullptr));
    spec.default_value = wrap(defaults_.*field);
    specs_.push_back(std::move(spec));
    setters_.push_back([field](Struct& s, const OptionValue& v) { unwrap(v, s.*field); });
    return specs_.back();
  }

  /// A text field that takes one of `choices`.
  OptionSpec& add(std::string Struct::*field, std::string name, Affects affects,
                  std::initializer_list<std::string> choices, std::string doc) {
    OptionSpec& spec = add(field, std::move(name), affects, std::move(doc));
    spec.type = OptionType::choice;
    spec.choices = choices;
    return spec;
  }

  const std::vector<OptionSpec>& specs() const { return specs_; }

  /// Defaults overlaid with `values`. Throws Error for an unknown name, a wrong type or range.
  Struct read(const OptionValues& values) const {
    Struct result{};
    for (const auto& [name, value] : values) {
      const size_t i = find(name);
      check_option(specs_[i], value);
      setters_[i](result, value);
    }
    for (const OptionSpec& spec : specs_) {
      if (spec.required && !values.contains(spec.name)) {
        throw Error("option '" + spec.name + "' is required: " + spec.doc);
      }
    }
    return result;
  }

 private:
  static OptionType type_of(const bool*) { return OptionType::boolean; }
  static OptionType type_of(const int64_t*) { return OptionType::integer; }
  static OptionType type_of(const double*) { return OptionType::real; }
  static OptionType type_of(const std::string*) { return OptionType::text; }
  static OptionType type_of(const std::filesystem::path*) { return OptionType::path; }
  static OptionType type_of(const Bytes*) { return OptionType::bytes; }
  static OptionType type_of(const Duration*) { return OptionType::duration; }
  static OptionType type_of(const Count*) { return OptionType::count; }
  static OptionType type_of(const std::vector<std::string>*) { return OptionType::list; }

  static OptionValue wrap(bool v) { return v; }
  static OptionValue wrap(int64_t v) { return v; }
  static OptionValue wrap(double v) { return v; }
  static OptionValue wrap(const std::string& v) { return v; }
  static OptionValue wrap(const std::filesystem::path& v) { return v.string(); }
  static OptionValue wrap(Bytes v) { return v.value; }
  static OptionValue wrap(Duration v) { return v.nanoseconds; }
  static OptionValue wrap(Count v) { return v.value; }
  static OptionValue wrap(const std::vector<std::string>& v) { return v; }

  static void unwrap(const OptionValue& v, bool& out) { out = std::get<bool>(v); }
  static void unwrap(const OptionValue& v, int64_t& out) { out = std::get<int64_t>(v); }
  static void unwrap(const OptionValue& v, double& out) {
    out = std::holds_alternative<int64_t>(v) ? static_cast<double>(std::get<int64_t>(v))
                                             : std::get<double>(v);
  }
  static void unwrap(const OptionValue& v, std::string& out) { out = std::get<std::string>(v); }
  static void unwrap(const OptionValue& v, std::filesystem::path& out) {
    out = std::get<std::string>(v);
  }
  static void unwrap(const OptionValue& v, Bytes& out) { out.value = std::get<int64_t>(v); }
  static void unwrap(const OptionValue& v, Duration& out) {
    out.nanoseconds = std::get<int64_t>(v);
  }
  static void unwrap(const OptionValue& v, Count& out) { out.value = std::get<int64_t>(v); }
  static void unwrap(const OptionValue& v, std::vector<std::string>& out) {
    out = std::get<std::vector<std::string>>(v);
  }

  size_t find(const std::string& name) const {
    for (size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].name == name) return i;
      for (const std::string& alias : specs_[i].aliases) {
        if (alias == name) return i;
      }
    }
    unknown_option(name, specs_);
  }

  Struct defaults_{};
  std::vector<OptionSpec> specs_;
  std::vector<std::function<void(Struct&, const OptionValue&)>> setters_;
};

}  // namespace assay
