#include "os/worker_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <initializer_list>

namespace tfrkit {

SignalsBlocked::SignalsBlocked() {
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_BLOCK, &blocked, &previous_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }

int ProcessId() { return static_cast<int>(getpid()); }

}  // namespace tfrkit
