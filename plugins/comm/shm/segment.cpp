// Layout of a segment: progress, mail counters, slot signatures, slots, mailboxes.
#include "segment.h"

namespace assay::comm {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSignatureBytes = 64;

size_t pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

size_t signatures_offset(const Layout& layout) {
  return sizeof(Progress) + static_cast<size_t>(layout.ranks) * sizeof(MailCounters);
}

}  // namespace

Signature signature_of(const Communicator::Request& request) {
  const at::Tensor& tensor = request.in.defined() ? request.in : request.out;
  const bool sized = tensor.defined() && request.op != Collective::all_to_all;
  const bool message = request.op == Collective::send || request.op == Collective::recv;
  return {.sequence = request.sequence,
          .elements = sized ? tensor.numel() : 0,
          .op = static_cast<uint8_t>(message ? Collective::send : request.op),
          .reduce = static_cast<uint8_t>(request.reduce),
          .dtype = static_cast<int8_t>(tensor.defined() ? tensor.scalar_type()
                                                        : at::ScalarType::Undefined),
          .peer = request.op == Collective::broadcast ? request.peer : -1};
}

std::string describe(const Signature& signature) {
  const auto op = static_cast<Collective>(signature.op);
  const auto dtype = static_cast<at::ScalarType>(signature.dtype);
  std::string text = name_of(op);
  if (op == Collective::all_reduce || op == Collective::reduce_scatter) {
    text += std::string("(") + name_of(static_cast<ReduceOp>(signature.reduce)) + ")";
  }
  text += " #" + std::to_string(signature.sequence);
  if (dtype == at::ScalarType::Undefined) return text;
  if (op == Collective::all_to_all) return text + " of " + dtype_name(dtype);
  text += " of " + std::to_string(signature.elements) + " x " + dtype_name(dtype);
  if (op == Collective::broadcast) text += " from " + std::to_string(signature.peer);
  return text;
}

size_t Layout::slots_offset() const {
  return pages(signatures_offset(*this) + static_cast<size_t>(slots) * kSignatureBytes);
}

size_t Layout::mailbox_offset(int destination) const {
  return pages(slots_offset() + static_cast<size_t>(slots * slot_bytes)) +
         static_cast<size_t>(destination) * pages(static_cast<size_t>(mailbox_bytes));
}

size_t Layout::total_bytes() const { return mailbox_offset(ranks); }

SharedMemory Segment::make(const Layout& layout) {
  return SharedMemory::create("assay-comm", layout.total_bytes());
}

MailCounters& Segment::mail(int peer) const {
  return reinterpret_cast<MailCounters*>(memory_.data() + sizeof(Progress))[peer];
}

Signature& Segment::signature(uint64_t chunk) const {
  static_assert(sizeof(Signature) <= kSignatureBytes);
  const size_t index = chunk % static_cast<uint64_t>(layout_.slots);
  return *reinterpret_cast<Signature*>(memory_.data() + signatures_offset(layout_) +
                                       index * kSignatureBytes);
}

std::byte* Segment::slot(uint64_t chunk) const {
  const uint64_t index = chunk % static_cast<uint64_t>(layout_.slots);
  return memory_.data() + layout_.slots_offset() +
         index * static_cast<uint64_t>(layout_.slot_bytes);
}

}  // namespace assay::comm
