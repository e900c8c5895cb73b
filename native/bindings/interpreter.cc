#include "bindings/interpreter.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "os/platform.h"

namespace tfrkit {

namespace nb = nanobind;

namespace {

constexpr int kMaxWaits = 2000;  // of a millisecond

// Plain atomics, so that there is no lock to find taken after a fork.
std::atomic<int> num_inside{0};
std::atomic<bool> is_closed{false};
std::atomic<int> owner{0};

// Runs at exit, before the interpreter ends: no thread enters any more, and those inside get a moment to
// leave. A forked child has only one of its parent's threads, so no other is inside.
void Close() {
  is_closed = true;
  if (ProcessId() != owner) return;
  nb::gil_scoped_release release;
  for (int i = 0; i < kMaxWaits && num_inside > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

// Counts itself in before it looks, and `Close` closes before it counts: one of the two sees the other.
Interpreter::Interpreter() {
  ++num_inside;
  is_open_ = !is_closed;
  if (is_open_) state_ = PyGILState_Ensure();
}

Interpreter::~Interpreter() {
  if (is_open_) PyGILState_Release(state_);
  --num_inside;
}

void Interpreter::CloseAtExit() {
  int nobody = 0;
  if (!owner.compare_exchange_strong(nobody, ProcessId())) return;
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Close));
}

}  // namespace tfrkit
