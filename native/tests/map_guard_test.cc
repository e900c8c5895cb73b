#include "os/map_guard.h"

#if defined(__linux__)

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/check.h"

namespace tfrkit::test {
namespace {

// A file in memory, mapped: page i is filled with the byte i + 1.
class CutFile {
 public:
  explicit CutFile(size_t num_pages)
      : size_(num_pages * kPage), descriptor_(memfd_create("cut", MFD_CLOEXEC)) {
    InstallMapGuard();
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i < num_pages; ++i) bytes.insert(bytes.end(), kPage, static_cast<uint8_t>(i + 1));
    if (pwrite(descriptor_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      std::abort();
    data_ = static_cast<uint8_t*>(mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0));
  }
  ~CutFile() {
    munmap(data_, size_);
    close(descriptor_);
  }
  CutFile(const CutFile&) = delete;
  CutFile& operator=(const CutFile&) = delete;

  void CutTo(size_t size) {
    if (ftruncate(descriptor_, static_cast<off_t>(size)) != 0) std::abort();
  }
  uint8_t* data() { return data_; }
  size_t size() const { return size_; }
  uint8_t FirstOf(size_t page) const { return static_cast<const volatile uint8_t*>(data_)[page * kPage]; }

  static inline const size_t kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));

 private:
  size_t size_;
  int descriptor_;
  uint8_t* data_;
};

// True if a child process that runs `act` is killed. (Under a sanitizer it exits instead.)
template <class Act>
bool Dies(Act&& act) {
  const pid_t child = fork();
  if (child == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status != 0;
}

TEST(MapGuard, LostPageReadsAsZerosAndMarksTheRange) {
  CutFile file(4);
  MappedRange range(file.data(), file.size());
  const MapGuard guard(&range);
  CHECK_EQ(file.FirstOf(3), 4);
  CHECK(!range.is_torn());
  file.CutTo(2 * CutFile::kPage);
  CHECK_EQ(file.FirstOf(1), 2);
  CHECK(!range.is_torn());
  CHECK_EQ(file.FirstOf(3), 0);
  CHECK(range.is_torn());
  CHECK_EQ(file.FirstOf(2), 0);  // before the page that was lost first
  CHECK_EQ(file.FirstOf(1), 2);
}

TEST(MapGuard, EachOfManyRangesIsMarkedSeparately) {
  CutFile first(2), second(2), third(2);
  MappedRange ranges[] = {
      {first.data(), first.size()}, {second.data(), second.size()}, {third.data(), third.size()}};
  MappedRange* const guarded[] = {&ranges[0], nullptr, &ranges[1], &ranges[2]};
  const MapGuard guard(guarded);
  second.CutTo(0);
  CHECK_EQ(first.FirstOf(1) + second.FirstOf(1) + third.FirstOf(1), 4);
  CHECK(!ranges[0].is_torn());
  CHECK(ranges[1].is_torn());
  CHECK(!ranges[2].is_torn());
}

TEST(MapGuard, InnerGuardLeavesTheOuterOneInForce) {
  CutFile outer_file(2), inner_file(2);
  MappedRange outer(outer_file.data(), outer_file.size()), inner(inner_file.data(), inner_file.size());
  const MapGuard guard(&outer);
  outer_file.CutTo(0);
  {
    const MapGuard nested(&inner);
    CHECK_EQ(outer_file.FirstOf(1), 0);
  }
  CHECK_EQ(outer_file.FirstOf(0), 0);
  CHECK(outer.is_torn());
  CHECK(!inner.is_torn());
}

TEST(MapGuard, SealedPagesFaultAgainAndAreHandledAgain) {
  CutFile file(3);
  MappedRange range(file.data(), file.size());
  file.CutTo(CutFile::kPage);
  {
    const MapGuard guard(&range);
    CHECK_EQ(file.FirstOf(2), 0);
  }
  range.Seal();
  CHECK(Dies([&] { file.FirstOf(2); }));
  CHECK(!Dies([&] { file.FirstOf(0); }));
  const MapGuard guard(&range);
  CHECK_EQ(file.FirstOf(2), 0);
}

TEST(MapGuard, FaultOutsideOfAGuardEndsTheProcess) {
  CutFile file(2), other(2);
  file.CutTo(0);
  MappedRange range(file.data(), file.size()), other_range(other.data(), other.size());
  CHECK(Dies([&] { file.FirstOf(1); }));
  CHECK(Dies([&] {
    const MapGuard guard(&other_range);
    file.FirstOf(1);
  }));
  CHECK(Dies([&] {
    {
      const MapGuard guard(&range);
    }
    file.FirstOf(1);
  }));
  CHECK(Dies([&] {
    const MapGuard guard(&range);
    std::thread([&] { file.FirstOf(1); }).join();
  }));
  CHECK(Dies([] { raise(SIGBUS); }));
  CHECK(!range.is_torn());
}

TEST(MapGuard, GuardWorksInAForkedProcess) {
  CutFile file(2);
  file.CutTo(0);
  MappedRange range(file.data(), file.size());
  CHECK(!Dies([&] {
    const MapGuard guard(&range);
    if (file.FirstOf(1) != 0 || !range.is_torn()) std::abort();
  }));
}

// Like Python's faulthandler: restores the previous handler and raises the signal again.
struct sigaction g_before;
void ReportAndRaise(int signal) {
  sigaction(signal, &g_before, nullptr);
  raise(signal);
}

TEST(MapGuard, HandlerInstalledLaterThatRaisesTheSignalAgainIsSurvived) {
  CutFile file(2);
  file.CutTo(0);
  MappedRange range(file.data(), file.size());
  const auto install = [] {
    struct sigaction later{};
    later.sa_handler = ReportAndRaise;
    later.sa_flags = SA_NODEFER;
    sigaction(SIGBUS, &later, &g_before);
  };
  CHECK(!Dies([&] {
    install();
    const MapGuard guard(&range);
    if (file.FirstOf(1) != 0) std::abort();
  }));
  CHECK(Dies([&] {
    install();
    file.FirstOf(1);
  }));
}

TEST(MapGuard, InstalledAgainItComesBeforeALaterHandler) {
  CutFile file(2), unguarded(2);
  file.CutTo(0);
  unguarded.CutTo(0);
  MappedRange range(file.data(), file.size());
  const auto install_later = [](void (*handler)(int)) {
    struct sigaction later{};
    later.sa_handler = handler;
    later.sa_flags = SA_NODEFER;
    sigaction(SIGBUS, &later, &g_before);
    InstallMapGuard();
  };
  CHECK(!Dies([&] {
    install_later([](int) { std::abort(); });
    const MapGuard guard(&range);
    if (file.FirstOf(1) != 0) std::abort();
  }));
  // Another fault gets to the later handler, then to the one before it, and ends the process.
  CHECK(Dies([&] {
    install_later(ReportAndRaise);
    unguarded.FirstOf(1);
  }));
  CHECK(!Dies([&] {
    install_later([](int) { _exit(0); });
    unguarded.FirstOf(1);
    std::abort();
  }));
}

TEST(MapGuard, HandlerThatWasRemovedIsInstalledAgain) {
  CutFile file(2);
  file.CutTo(0);
  MappedRange range(file.data(), file.size());
  CHECK(!Dies([&] {
    for (int round = 0; round < 20; ++round) {
      signal(SIGBUS, SIG_DFL);
      InstallMapGuard();
    }
    const MapGuard guard(&range);
    if (file.FirstOf(1) != 0) std::abort();
  }));
}

TEST(MapGuard, ThreadsThatReadOneRangeAllSeeTheMark) {
  for (int round = 0; round < 20; ++round) {
    CutFile file(64);
    MappedRange range(file.data(), file.size());
    std::atomic<bool> is_cut{false};
    std::atomic<int> num_unmarked{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        while (!is_cut) {
          const MapGuard guard(&range);
          bool has_zero = false;
          for (size_t page = 0; page < 64; ++page) has_zero |= file.FirstOf(page) == 0;
          if (has_zero && !range.is_torn()) ++num_unmarked;
          if (has_zero) range.Seal();
        }
      });
    }
    file.CutTo(CutFile::kPage * static_cast<size_t>(round));
    is_cut = true;
    for (std::thread& reader : readers) reader.join();
    CHECK_EQ(num_unmarked.load(), 0);
  }
}

}  // namespace
}  // namespace tfrkit::test

#endif
