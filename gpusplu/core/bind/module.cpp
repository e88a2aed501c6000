#include <stdexcept>

#include "base/simd_there.hpp"
#include "bind/bind.hpp"

NB_MODULE(_core, m) {
  if (!gs::simd_is_there())
    throw std::runtime_error(
        "gpusplu was compiled for a processor with other instructions than this one; install it again here, or for all "
        "processors: pip install --no-cache-dir --force-reinstall . -C cmake.define.GPUSPLU_LEVELS=all");
  // Factors that a script keeps in globals are alive when the interpreter ends: no reason for a report on stderr.
  nb::set_leak_warnings(false);
  m.doc() = "C++ core of gpusplu: analysis and the CPU engine.";
  gs::bind_interrupts(m);
  gs::bind_threads(m);
  gs::bind_matrix(m);
  gs::bind_symbolic(m);
  gs::bind_costs(m);
  gs::bind_analyze(m);
  gs::bind_ladder(m);
  gs::bind_patterns(m);
  gs::bind_factor(m);
  gs::bind_partial(m);
  gs::bind_plan(m);
  gs::bind_lockstep_plan(m);
  gs::bind_lockstep(m);
  gs::bind_columns(m);
  gs::bind_solve_schedule(m);
  gs::bind_column_groups(m);
  gs::bind_trailing_terms(m);
}
