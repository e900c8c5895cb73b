#include "os/worker_threads.h"

#if !defined(_WIN32)
#include <pthread.h>

#include <initializer_list>
#endif

namespace tfrkit {

#if defined(_WIN32)

// Signals of Windows are calls on threads of their own.
SignalsBlocked::SignalsBlocked() = default;

SignalsBlocked::~SignalsBlocked() = default;

#else

SignalsBlocked::SignalsBlocked() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, &previous_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

#endif

}  // namespace tfrkit
