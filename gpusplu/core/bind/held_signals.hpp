// Holds back signals with handlers written in Python.
#pragma once
#include <Python.h>

namespace gs {

// Whether the calling thread is Python's main thread.
bool runs_signal_handlers();

// While it exists, such signals are only recorded; its destructor raises them. If a handler interrupts an import, the
// import leaves modules behind that cannot be imported again (NumPy's, this one), and imports in the handler itself see
// half-initialized modules. No effect in threads that run no handlers, which are all but the main one, and inside
// another HeldSignals.
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
