#include "bind/bind.hpp"

NB_MODULE(_core, m) {
  m.doc() = "C++ core of gpusplu: analysis and the CPU engine.";
  gs::bind_threads(m);
  gs::bind_matrix(m);
  gs::bind_ordering(m);
  gs::bind_matching(m);
  gs::bind_symbolic(m);
  gs::bind_column_lu(m);
  gs::bind_dense(m);
  gs::bind_fronts(m);
  gs::bind_analyze(m);
  gs::bind_factor(m);
}
