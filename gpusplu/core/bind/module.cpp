#include "base/processors.hpp"
#include "bind/bind.hpp"
#include "bind/held_signals.hpp"

// Defines PyInit__core_bindings, which PyInit__core calls.
NB_MODULE(_core_bindings, m) {
  // Factors in a script's globals are alive when the interpreter ends, which needs no report on stderr.
  nb::set_leak_warnings(false);
  m.doc() = "C++ core of gpusplu: analysis and the CPU engine.";
  gs::bind_interrupts(m);
  gs::bind_held_signals(m);
  gs::bind_threads(m);
  gs::bind_matrix(m);
  gs::bind_symbolic(m);
  gs::bind_analyze(m);
  gs::bind_accuracy_policy(m);
  gs::bind_patterns(m);
  gs::bind_factor(m);
  gs::bind_fused(m);
  gs::bind_partial(m);
  gs::gpu::bind_plan(m);
  gs::bind_lockstep(m);
  gs::gpu::bind_columns(m);
}

namespace gs {
namespace {

int (*register_bindings)(PyObject*) = nullptr;  // nanobind's function
bool begun = false;                             // types can be registered once in a process
PyObject* finished = nullptr;                   // the module's contents after that

int fail(const char* message) {
  PyErr_SetString(PyExc_ImportError, message);
  return -1;
}

// An import may fail or be undone after this has succeeded: a signal handler raises in importlib, or code removes the
// module from sys.modules. The next import gets another module with the same objects. Steps that may raise come first,
// before any type is registered. In a subinterpreter nanobind would replace the main interpreter's state.
int fill(PyObject* module) {
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
    return fail("gpusplu can be imported in the main interpreter only, not in subinterpreters");
  if (finished) {
    PyObject* const names = PyModule_GetDict(module);
    PyDict_DelItemString(names, "__doc__");  // removes None, so that importlib's value stays
    return PyDict_Merge(names, finished, 0);
  }
  if (begun)
    return fail("an import of gpusplu failed before in this process, and another is not possible: start again");
  if (!simd_is_available())
    return fail(
        "gpusplu was compiled for a processor with other instructions than this one; install it again here, or for all "
        "processors: pip install --no-cache-dir --force-reinstall . -C cmake.define.GPUSPLU_LEVELS=all");
  if (!find_main_thread()) return -1;
  const HeldSignals held;
  begun = true;
  if (register_bindings(module) < 0) return -1;
  finished = PyDict_Copy(PyModule_GetDict(module));
  return finished ? 0 : -1;
}

}  // namespace
}  // namespace gs

extern "C" NB_EXPORT PyObject* PyInit__core() {
  PyObject* made = PyInit__core_bindings();
  if (!made || gs::register_bindings) return made;
  for (PyModuleDef_Slot* slot = reinterpret_cast<PyModuleDef*>(made)->m_slots; slot->slot != 0; slot++)
    if (slot->slot == Py_mod_exec) {
      gs::register_bindings = reinterpret_cast<int (*)(PyObject*)>(slot->value);
      slot->value = reinterpret_cast<void*>(gs::fill);
    }
  return made;
}
