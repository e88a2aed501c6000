// Signals whose handlers are written in Python, kept for later.
#pragma once
#include <Python.h>

namespace gs {

// Whether this is Python's main thread.
bool runs_signal_handlers();

// While it lives, such signals are only noted down; when it ends, they are raised. An import that a handler interrupts
// leaves modules behind that cannot be imported again (NumPy's, this one), and what the handler itself imports then is
// half there. Does nothing in threads where no handlers run, which are all but the main one, and inside of another.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  bool holding_ = false;
};

}  // namespace gs
