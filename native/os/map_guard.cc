#include "os/map_guard.h"

#include <algorithm>

#include "os/platform.h"

namespace tfrkit {

void MappedRange::Release(uint64_t start, uint64_t stop) {
  const uint64_t page = PageSize();
  const uint64_t first = (start + page - 1) / page * page;
  const uint64_t last = std::min<uint64_t>(stop, size_) / page * page;
  if (first < last) ForgetPages(start_ + first, last - first);
}

}  // namespace tfrkit

#if defined(__linux__)

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <mutex>

namespace tfrkit {
namespace {

// Read by the handler. A thread's copy is allocated at first use: a thread inside a guard has used it. (The
// TLS model without allocation would put every thread-local of the module into the small space a C library
// reserves for late-loaded modules.)
constinit thread_local const MapGuard* t_guard = nullptr;

// The handlers that ours replaced, oldest first, and how many of them are still to be asked.
constexpr int kMaxReplaced = 8;
struct sigaction g_replaced[kMaxReplaced];
std::atomic<int> g_num_replaced{0};
uintptr_t g_page_size = 4096;

// An earlier handler must see a fault outside our ranges unchanged. One that raises the signal again for the
// handler before it (Python's faulthandler does) gets here again: then the next older one is asked.
void PassOn(int signal, siginfo_t* info, void* context) {
  int last = g_num_replaced.load();
  while (last > 1 && !g_num_replaced.compare_exchange_weak(last, last - 1)) {
  }
  const struct sigaction& replaced = g_replaced[last - 1];
  if ((replaced.sa_flags & SA_SIGINFO) != 0) {
    replaced.sa_sigaction(signal, info, context);
  } else if (replaced.sa_handler == SIG_DFL || (replaced.sa_handler == SIG_IGN && info->si_code > 0)) {
    // A real fault happens again on return and ends the process. A sent signal does not.
    struct sigaction by_default{};
    by_default.sa_handler = SIG_DFL;
    sigaction(signal, &by_default, nullptr);
    if (info->si_code <= 0) raise(signal);
  } else if (replaced.sa_handler != SIG_IGN) {
    replaced.sa_handler(signal);
  }
}

void HandleFault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool is_mended = info->si_code == BUS_ADRERR && MapGuard::Mend(static_cast<uint8_t*>(info->si_addr));
  // Python's faulthandler, if enabled since InstallMapGuard, prints a trace, restores this handler and raises
  // the signal again. The fault then happens again and is handled.
  const bool is_echo = info->si_code == SI_TKILL && info->si_pid == getpid() && MapGuard::IsActive();
  if (!is_mended && !is_echo) PassOn(signal, info, context);
  errno = error;
}

}  // namespace

bool MappedRange::Read(uint64_t start, uint8_t* out, size_t size) const {
  while (size != 0) {
    const ssize_t count = pread(descriptor_, out, size, static_cast<off_t>(start));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    start += static_cast<uint64_t>(count);
    out += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

void InstallMapGuard() {
  struct sigaction now;
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == HandleFault) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  g_page_size = PageSize();
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == HandleFault) return;
  // Save the replaced handler first: the new one may run as soon as it is installed.
  const int count = std::min(g_num_replaced.load(), kMaxReplaced - 1);
  g_replaced[count] = now;
  g_num_replaced = count + 1;
  struct sigaction ours{};
  ours.sa_sigaction = HandleFault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

bool MappedRange::ReplaceFrom(uint8_t* page) {
  // Marked before the zeros are mapped, so that no thread reads zeros from an unmarked range.
  uint8_t* lost = lost_.load(std::memory_order_relaxed);
  while ((lost == nullptr || page < lost) && !lost_.compare_exchange_weak(lost, page)) {
  }
  // All pages after a lost one are lost: the file ends before it.
  const size_t size = static_cast<size_t>(start_ + size_ - page);
  return mmap(page, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void MappedRange::Seal() {
  uint8_t* const page = lost_.load();
  if (page == nullptr) return;
  // Maps an empty file. A thread that is still reading faults again and is handled again.
  const int descriptor = static_cast<int>(syscall(SYS_memfd_create, "tfrkit-lost", 1u /* MFD_CLOEXEC */));
  if (descriptor < 0) return;
  const size_t size = static_cast<size_t>(start_ + size_ - page);
  [[maybe_unused]] void* const map = mmap(page, size, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0);
  close(descriptor);
}

MapGuard::MapGuard(MappedRange* range) : only_(range) { Enter(); }

MapGuard::MapGuard(std::span<MappedRange* const> ranges) : only_(nullptr), ranges_(ranges) { Enter(); }

void MapGuard::Enter() {
  outer_ = t_guard;
  t_guard = this;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // before the first byte is read
}

MapGuard::~MapGuard() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  t_guard = outer_;
}

bool MapGuard::IsActive() { return t_guard != nullptr; }

bool MapGuard::Mend(uint8_t* address) {
  uint8_t* const page = address - reinterpret_cast<uintptr_t>(address) % g_page_size;
  for (const MapGuard* guard = t_guard; guard != nullptr; guard = guard->outer_) {
    if (guard->only_ != nullptr && guard->only_->Contains(address)) return guard->only_->ReplaceFrom(page);
    for (MappedRange* range : guard->ranges_) {
      if (range != nullptr && range->Contains(address)) return range->ReplaceFrom(page);
    }
  }
  return false;
}

}  // namespace tfrkit

#else

namespace tfrkit {

void InstallMapGuard() {}
bool MappedRange::Read(uint64_t, uint8_t*, size_t) const { return false; }
void MappedRange::Seal() {}
bool MappedRange::ReplaceFrom(uint8_t*) { return false; }
MapGuard::MapGuard(MappedRange* range) : only_(range), outer_(nullptr) {}
MapGuard::MapGuard(std::span<MappedRange* const> ranges) : only_(nullptr), ranges_(ranges), outer_(nullptr) {}
MapGuard::~MapGuard() = default;
bool MapGuard::Mend(uint8_t*) { return false; }
bool MapGuard::IsActive() { return false; }

}  // namespace tfrkit

#endif
