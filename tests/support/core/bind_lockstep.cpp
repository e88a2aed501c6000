#include "numeric/lockstep_factor.hpp"
#include "testing.hpp"

namespace gs {
namespace {

// Systems factored and solved in lockstep by the instruction set that was set here, one after the other or `at_once`:
// rows of `values` and of `b`.
template <class T> NumPy<T> lockstep_solve(const Symbolic& symbolic, In<off> ptr, In<idx> ind, const Costs& costs,
                                           In<T> values, In<T> b, int trans, bool at_once) {
  const PatternView A = pattern_view(ptr, ind);
  const idx count = columns_of(b, A.n, "b");
  const AccuracyPolicy policy(eps<T>, Pivoting::automatic, Refine::automatic, 0);
  std::vector<T> x(b.shape(0));
  without_gil([&] {
    LockstepFactor<T> factor(symbolic, A, count, costs.lockstep.merging, policy);
    if (at_once) {
      factor.refactor_solve(values.data(), A.nnz(), nullptr, (Trans)trans, 1, b.data(), x.data());
    } else {
      factor.refactor(values.data(), A.nnz(), nullptr);
      factor.solve((Trans)trans, 1, b.data(), x.data());
    }
  });
  return to_numpy(std::move(x));
}

}  // namespace

void bind_lockstep_solve(nb::module_& m) {
  for_scalars([&]<class T>(const char*) {
    m.def("lockstep_solve", &lockstep_solve<T>, "symbolic"_a, "ptr"_a, "ind"_a, "costs"_a, "values"_a.noconvert(),
          "b"_a.noconvert(), "trans"_a = 0, "at_once"_a = false);
  });
}

}  // namespace gs
