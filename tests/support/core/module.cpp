// What only tests and benchmarks call: stages of the analysis and both CPU engines by themselves. The module has a copy
// of the core, so its threads and its instruction set level are set here.
#include "testing.hpp"

NB_MODULE(_core_testing, m) {
  nb::set_leak_warnings(false);
  m.doc() = "Parts of gpusplu's C++ core for its tests and benchmarks; not in wheels.";
  nb::module_::import_("gpusplu._core");  // classes that both modules use
  gs::bind_threads(m);
  gs::bind_teams(m);
  gs::bind_products(m);
  gs::bind_ordering(m);
  gs::bind_structure(m);
  gs::bind_numeric(m);
  gs::bind_dense(m);
  gs::bind_lockstep_solve(m);
}
