// Filling a FlatRow from nlohmann's parser events.
#include "core/store/flat_row.h"

namespace assay::store {

using nlohmann::json;

/// Takes the parser's events; answers false, which ends the parse, to what a flat row cannot hold.
class FlatRowReader {
 public:
  explicit FlatRowReader(FlatRow& row) : row_(row) {}

  bool start_object(size_t) { return !std::exchange(inside_, true); }
  bool end_object() { return true; }
  bool key(std::string& name) {
    value_ = &row_.next();
    value_->key.assign(name);
    return true;
  }
  bool null() { return set(FlatValue::Kind::null, 0, 0); }
  bool boolean(bool value) { return set(FlatValue::Kind::boolean, value, value); }
  bool number_integer(int64_t value) {
    return set(FlatValue::Kind::integer, value, static_cast<double>(value));
  }
  bool number_unsigned(uint64_t value) {
    return set(FlatValue::Kind::integer, static_cast<int64_t>(value), static_cast<double>(value));
  }
  bool number_float(double value, const std::string&) {
    return set(FlatValue::Kind::real, 0, value);
  }
  bool string(std::string& value) {
    if (!set(FlatValue::Kind::text, 0, 0)) return false;
    value_->text.assign(value);
    return true;
  }
  bool binary(json::binary_t&) { return false; }
  bool start_array(size_t) { return false; }
  bool end_array() { return false; }
  bool parse_error(size_t, const std::string&, const json::exception&) { return false; }

 private:
  bool set(FlatValue::Kind kind, int64_t integer, double real) {
    if (value_ == nullptr) return false;
    value_->kind = kind;
    value_->integer = integer;
    value_->real = real;
    return true;
  }

  FlatRow& row_;
  FlatValue* value_ = nullptr;
  bool inside_ = false;
};

json FlatValue::json() const {
  switch (kind) {
    case Kind::null:
      return nullptr;
    case Kind::boolean:
      return integer != 0;
    case Kind::integer:
      return integer;
    case Kind::real:
      return real;
    case Kind::text:
      return text;
  }
  return nullptr;
}

FlatValue& FlatRow::next() {
  if (size_ == values_.size()) values_.emplace_back();
  return values_[size_++];
}

bool FlatRow::parse(std::string_view text) {
  size_ = 0;
  FlatRowReader reader(*this);
  return nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
}

bool FlatRow::assign(const nlohmann::json& row) {
  size_ = 0;
  FlatRowReader reader(*this);
  if (!row.is_object()) return false;
  for (const auto& [key, value] : row.items()) {
    std::string name = key;
    reader.key(name);
    if (value.is_structured() || value.is_binary()) return false;
    if (value.is_null()) {
      reader.null();
    } else if (value.is_boolean()) {
      reader.boolean(value.get<bool>());
    } else if (value.is_number_unsigned()) {
      reader.number_unsigned(value.get<uint64_t>());
    } else if (value.is_number_integer()) {
      reader.number_integer(value.get<int64_t>());
    } else if (value.is_number_float()) {
      reader.number_float(value.get<double>(), {});
    } else {
      std::string copy = value.get<std::string>();
      reader.string(copy);
    }
  }
  return true;
}

std::string_view FlatRow::table() const {
  for (size_t i = 0; i < size_; ++i) {
    const FlatValue& value = values_[i];
    if (value.key == "t" && value.kind == FlatValue::Kind::text) return value.text;
  }
  return {};
}

}  // namespace assay::store
