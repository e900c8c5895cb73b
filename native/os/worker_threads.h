// What threads of our own have to know of the process they run in.
#pragma once

#include <csignal>

#include "os/platform.h"

namespace tfrkit {

// While it lives, threads that are started get no signals but those of their own faults: the interpreter's
// handlers belong to the threads that Python knows, and a signal ends the waiting of the thread it comes to.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
#if !defined(_WIN32)
  sigset_t previous_;
#endif
};

}  // namespace tfrkit
