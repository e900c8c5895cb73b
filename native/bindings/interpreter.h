// Entry into the interpreter, for code called on foreign threads.
#pragma once

#include <nanobind/nanobind.h>

namespace tfrkit {

// Holds the interpreter lock, unless the interpreter is about to end: a thread that asks for the lock after
// that is stopped in the middle of foreign C++ frames. Test it before touching anything of
// Python.
class Interpreter {
 public:
  Interpreter();
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  explicit operator bool() const { return is_open_; }

  // Has the way closed when the program exits. REQUIRES: the interpreter lock. Calls after the first do
  // nothing.
  static void CloseAtExit();

 private:
  bool is_open_;
  PyGILState_STATE state_{};
};

}  // namespace tfrkit
