// Actions as text, and the trivial schedule.
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "assay/error.h"
#include "assay/schedule.h"
#include "core/base/nearest.h"

namespace assay {
namespace {

constexpr std::array<std::pair<ActionKind, std::string_view>, 11> kLetters{{
    {ActionKind::send_forward, "SEND_F"},
    {ActionKind::receive_forward, "RECV_F"},
    {ActionKind::send_backward, "SEND_B"},
    {ActionKind::receive_backward, "RECV_B"},
    {ActionKind::unshard, "UNSHARD"},
    {ActionKind::reshard, "RESHARD"},
    {ActionKind::reduce_gradients, "REDUCE_GRAD"},
    {ActionKind::forward, "F"},
    {ActionKind::backward, "B"},
    {ActionKind::backward_input, "I"},
    {ActionKind::backward_weight, "W"},
}};

constexpr std::string_view kPair = ")OVERLAP_F_B";
constexpr const char* kNotation =
    "an action is stage, letters, microbatch: 0F1, 2B0, 1I3, 1W3, 0SEND_F1, 0REDUCE_GRAD";

bool has_microbatch(ActionKind kind) {
  return kind != ActionKind::unshard && kind != ActionKind::reshard &&
         kind != ActionKind::reduce_gradients;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool read(std::string_view& text, int64_t& number) {
  if (text.empty() || !is_digit(text.front())) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

/// Every action with the numbers of `text`, for a suggestion.
std::vector<std::string> candidates(std::string_view text) {
  const auto letters_begin = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto letters_end = std::find_if_not(text.rbegin(), text.rend(), is_digit).base();
  const std::string stage(text.begin(), letters_begin);
  const std::string microbatch(letters_begin <= letters_end ? letters_end : text.end(), text.end());
  constexpr size_t kMostDigits = 18;  // fits an int64_t
  std::vector<std::string> found;
  if (stage.size() > kMostDigits || microbatch.size() > kMostDigits) return found;
  for (const auto& [kind, letters] : kLetters) {
    std::string action = (stage.empty() ? "0" : stage) + std::string(letters);
    if (has_microbatch(kind)) action += microbatch.empty() ? "0" : microbatch;
    found.push_back(std::move(action));
  }
  return found;
}

[[noreturn]] void refuse(const std::string& text) {
  const std::string near = did_you_mean(nearest(text, candidates(text)));
  throw Error("'" + text + "' is no schedule action", near.empty() ? kNotation : near);
}

}  // namespace

bool is_compute(ActionKind kind) {
  return kind == ActionKind::forward || kind == ActionKind::backward ||
         kind == ActionKind::backward_input || kind == ActionKind::backward_weight;
}

std::string print(const Action& action) {
  for (const auto& [kind, letters] : kLetters) {
    if (kind != action.kind) continue;
    std::string text = std::to_string(action.stage) + std::string(letters);
    if (has_microbatch(kind)) text += std::to_string(action.microbatch);
    return text;
  }
  return "?";
}

std::string print(std::span<const Action> actions) {
  std::string row;
  bool paired = false;
  for (const Action& action : actions) {
    row += paired || row.empty() ? "" : ",";
    row += action.overlaps_next ? "(" : "";
    row += print(action);
    row += action.overlaps_next ? ";" : paired ? kPair : "";
    paired = action.overlaps_next;
  }
  return row;
}

Action parse_action(const std::string& text) {
  std::string_view rest = text;
  Action action;
  if (read(rest, action.stage)) {
    for (const auto& [kind, letters] : kLetters) {
      if (!rest.starts_with(letters)) continue;
      std::string_view tail = rest.substr(letters.size());
      action.kind = kind;
      const bool numbered = !has_microbatch(kind) || read(tail, action.microbatch);
      if (numbered && tail.empty()) return action;
    }
  }
  refuse(text);
}

ActionList parse_cell(const std::string& text) {
  if (!text.starts_with("(")) return {parse_action(text)};
  const size_t middle = text.find(';');
  if (middle == std::string::npos || !text.ends_with(kPair) ||
      text.size() - kPair.size() < middle) {
    throw Error("'" + text + "' is no overlapped pair", "written (0F4;7B1)OVERLAP_F_B");
  }
  Action first = parse_action(text.substr(1, middle - 1));
  const Action second =
      parse_action(text.substr(middle + 1, text.size() - kPair.size() - middle - 1));
  if (first.kind != ActionKind::forward ||
      (second.kind != ActionKind::backward && second.kind != ActionKind::backward_input)) {
    throw Error("'" + text + "' overlaps " + print(first) + " and " + print(second),
                "a pair is a forward and a backward: (0F4;7B1)OVERLAP_F_B");
  }
  first.overlaps_next = true;
  return {first, second};
}

std::span<const Action> unit_at(const ActionList& list, size_t index) {
  const size_t size = list[index].overlaps_next && index + 1 < list.size() ? 2 : 1;
  return std::span(list).subspan(index, size);
}

ActionList accumulation_schedule(int64_t microbatches) {
  ActionList list;
  for (int64_t m = 0; m < microbatches; ++m) {
    list.push_back({0, ActionKind::forward, m});
    list.push_back({0, ActionKind::backward, m});
  }
  list.push_back({0, ActionKind::reduce_gradients, 0});
  return list;
}

}  // namespace assay
