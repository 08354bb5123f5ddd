// Actions as text, and the trivial schedule.
#include "assay/schedule.h"

#include <array>
#include <charconv>
#include <utility>

#include "assay/error.h"

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

bool has_microbatch(ActionKind kind) {
  return kind != ActionKind::unshard && kind != ActionKind::reshard &&
         kind != ActionKind::reduce_gradients;
}

bool read(std::string_view& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string print(const Action& action) {
  for (const auto& [kind, letters] : kLetters) {
    if (kind != action.kind) continue;
    std::string text = std::to_string(action.stage) + std::string(letters);
    if (has_microbatch(kind)) text += std::to_string(action.microbatch);
    return text;
  }
  return "?";
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
      if (numbered && tail.empty() && action.stage >= 0 && action.microbatch >= 0) return action;
    }
  }
  throw Error(
      "'" + text + "' is no schedule action",
      "an action is stage, letters, microbatch: 0F1, 2B0, 1I3, 1W3, 0SEND_F1, 0REDUCE_GRAD");
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
