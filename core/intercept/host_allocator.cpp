// Free lists by size class behind one mutex; each block carries its class in front of the data.
#include "core/intercept/host_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::intercept {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and what vector kernels of LibTorch expect

// Eight classes per power of two: at most 12.5 % of a block is waste.
size_t size_class(size_t bytes) {
  if (bytes <= 8 * kAlignment) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

struct Header {
  size_t requested;
  size_t reserved;
};
static_assert(sizeof(Header) <= kAlignment);

class HostAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes == 0 ? nullptr : take(bytes);
    return {data, data, &HostAllocator::release, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &HostAllocator::release; }
  void copy_data(void* to, const void* from, size_t count) const override {
    default_copy_data(to, from, count);
  }

  static HostAllocator& instance() {
    static HostAllocator* allocator = new HostAllocator;  // tensors outlive main
    return *allocator;
  }

  HostMemory memory() {
    const std::lock_guard lock(mutex_);
    return memory_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    memory_.peak_bytes = memory_.allocated_bytes;
    memory_.peak_reserved_bytes = memory_.reserved_bytes;
  }
  void limit(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

 private:
  static Header* header(void* data) {
    return reinterpret_cast<Header*>(static_cast<char*>(data) - kAlignment);
  }

  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto wanted = static_cast<int64_t>(bytes);
    if (limit_ > 0 && memory_.allocated_bytes + wanted > limit_) {
      fail("tensors hold " + std::to_string(memory_.allocated_bytes) + " bytes of the limit " +
           std::to_string(limit_) + "; asked for " + std::to_string(bytes) + " more");
    }
    const size_t reserved = size_class(bytes);
    auto& list = free_[reserved];
    void* data = nullptr;
    if (list.empty()) {
      data = fresh(reserved);
    } else {
      data = list.back();
      list.pop_back();
    }
    *header(data) = {bytes, reserved};
    memory_.allocated_bytes += wanted;
    memory_.peak_bytes = std::max(memory_.peak_bytes, memory_.allocated_bytes);
    return data;
  }

  void* fresh(size_t reserved) {
    void* base = nullptr;
    if (posix_memalign(&base, kAlignment, reserved + kAlignment) != 0) {
      drop_cache();
      if (posix_memalign(&base, kAlignment, reserved + kAlignment) != 0) {
        fail("the system gave no " + std::to_string(reserved) + " bytes");
      }
    }
    memory_.reserved_bytes += static_cast<int64_t>(reserved);
    memory_.peak_reserved_bytes = std::max(memory_.peak_reserved_bytes, memory_.reserved_bytes);
    return static_cast<char*>(base) + kAlignment;
  }

  void drop_cache() {
    for (auto& [reserved, list] : free_) {
      for (void* data : list) std::free(header(data));
      memory_.reserved_bytes -= static_cast<int64_t>(reserved * list.size());
      list.clear();
    }
  }

  [[noreturn]] static void fail(const std::string& text) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", text);
    std::abort();
  }

  static void release(void* data) {
    if (data == nullptr) return;
    HostAllocator& self = instance();
    const std::lock_guard lock(self.mutex_);
    const Header block = *header(data);
    self.free_[block.reserved].push_back(data);
    self.memory_.allocated_bytes -= static_cast<int64_t>(block.requested);
  }

  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<void*>> free_;
  HostMemory memory_;
  int64_t limit_ = 0;
};

}  // namespace

void install_host_allocator() { c10::SetCPUAllocator(&HostAllocator::instance(), 200); }
void limit_host_memory(int64_t bytes) { HostAllocator::instance().limit(bytes); }
HostMemory host_memory() { return HostAllocator::instance().memory(); }
void reset_peak_host_memory() { HostAllocator::instance().reset_peak(); }

int64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // Linux counts KiB
}

}  // namespace assay::intercept
