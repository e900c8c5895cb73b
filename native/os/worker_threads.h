// What threads of our own have to know of the process they run in.
#pragma once

#include <csignal>

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
  sigset_t previous_;
};

// Differs in a forked child, which has none of its parent's threads.
int ProcessId();

}  // namespace tfrkit
