// Test access to the dense kernels: one front as Fortran-ordered arrays, any team size, any instruction set level.
#include <nanobind/stl/complex.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <span>
#include <thread>
#include <vector>

#include "base/stopwatch.hpp"
#include "numeric/dense_front.hpp"
#include "numeric/front_assembly.hpp"
#include "testing.hpp"

namespace gs {
namespace {

template <class T> using Block = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;  // column-major: strides (1, ld)

template <class T> off leading(const Block<T>& block, const char* name) {
  if (block.shape(0) > 1 && block.stride(0) != 1)
    throw nb::value_error((std::string(name) + " is not column-major; pass order='F'").c_str());
  return block.shape(1) > 1 ? block.stride(1) : std::max<off>(1, block.shape(0));
}

nb::dict as_dict(const PivotStats& s) {
  nb::dict d;
  d["n_perturbed"] = s.n_perturbed, d["n_tiny"] = s.n_tiny, d["min_pivot"] = s.min_pivot;
  d["max_multiplier"] = s.max_multiplier, d["max_upper"] = s.max_upper, d["finite"] = s.finite;
  return d;
}

// Runs body(Loops&) on up to `size` threads.
template <class Body> void in_loops(int size, Body&& body) {
  SharedLoops shared(size);
  run_helpers(size, [&](const Team& team) {
    shared.run(team, [&](Loops& loops) {
      if (team.rank > 0) return false;
      body(loops);
      shared.end();
      return true;
    });
  });
}

template <class T> std::vector<T*> pointers(std::vector<T>& all) {
  std::vector<T*> each;
  for (T& one : all) each.push_back(&one);
  return each;
}

template <class T> nb::dict bind_lu(Block<T> L, Block<T> Ut, Block<T> C, InOut<idx> pivots, double perturb_below,
                                    double tiny_below, int team_size) {
  const idx W = (idx)L.shape(1), H = (idx)L.shape(0) - W;
  const off ldl = leading(L, "L"), ldu = leading(Ut, "Ut"), ldc = leading(C, "C");
  std::vector<PivotStats> stats(std::max(team_size, 1));
  const PivotRule rule{perturb_below, tiny_below};
  const std::vector<PivotStats*> each = pointers(stats);
  without_gil([&] {
    in_loops(team_size, [&](Loops& loops) {
      lu_front<T>(loops, W, H, L.data(), ldl, Ut.data(), ldu, C.data(), ldc, pivots.data(), rule, each.data());
    });
  });
  for (const PivotStats& others : std::span(stats).subspan(1)) merge(stats[0], others);
  return as_dict(stats[0]);
}

// The lower triangle of a square block in strips, which go back to it at last.
template <class T> class InStrips {
 public:
  InStrips(T* block, off ld, idx n, bool one_triangle)
      : block_(block), ld_(ld), n_(n), width_(strip_width(n, one_triangle)) {
    entries_.assign(size_of_strips(n, width_), T(0));
    each([](T& inside, T& outside) { inside = outside; });
  }
  ~InStrips() {
    each([](T& inside, T& outside) { outside = inside; });
  }
  Strips<T> get() { return {entries_.data(), n_, width_}; }

 private:
  template <class Copy> void each(Copy&& copy) {
    for (idx j = 0; j < n_; j++)
      for (idx i = width_ < n_ ? j : 0; i < n_; i++) copy(*Strip<T>(get(), j).at(i, j), block_[i + j * ld_]);
  }
  T* block_;
  off ld_;
  idx n_, width_;
  std::vector<T> entries_;
};

template <class T> idx bind_cholesky(Block<T> L, Block<T> C, int team_size) {
  const idx W = (idx)L.shape(1), H = (idx)L.shape(0) - W;
  const off ldl = leading(L, "L"), ldc = leading(C, "C");
  idx failed = -1;
  nb::gil_scoped_release release;
  InStrips<T> strips(C.data(), ldc, H, true);
  in_loops(team_size, [&](Loops& loops) { failed = cholesky_front<T>(loops, W, H, L.data(), ldl, strips.get()); });
  return failed;
}

// kind: the name of the member of DenseKernels.
template <class T>
void bind_solve(const std::string& kind, Block<T> L, Block<T> Ut, Block<T> x, Block<T> y, bool conj) {
  const idx W = (idx)L.shape(1), H = (idx)L.shape(0) - W, nrhs = (idx)x.shape(1);
  const off ldl = leading(L, "L"), ldu = leading(Ut, "Ut"), ldx = leading(x, "x"), ldy = leading(y, "y");
  const DenseKernels<T>& k = kernels<T>();
  T *l = L.data(), *ut = Ut.data(), *px = x.data(), *py = y.data();
  nb::gil_scoped_release release;
  const auto solve = [&](auto kernel, const T* B, off ldb, bool conj) {
    kernel(W, H, nrhs, l, ldl, B, ldb, px, ldx, py, ldy, conj);
  };
  if (kind == "lu_forward") solve(k.lu_forward, l + W, ldl, false);
  else if (kind == "lu_backward") solve(k.lu_backward, ut, ldu, false);
  else if (kind == "lu_forward_t") solve(k.lu_forward_t, ut, ldu, conj);
  else if (kind == "lu_backward_t") solve(k.lu_backward_t, l + W, ldl, conj);
  else if (kind == "cholesky_forward") solve(k.cholesky_forward, l + W, ldl, conj);
  else if (kind == "cholesky_backward") solve(k.cholesky_backward, l + W, ldl, !conj);
  else throw nb::value_error(("no solve kernel named " + kind).c_str());
}

// Least seconds of one factorization, copying the blocks before each; for asv_bench/experiments/dense.py.
template <class T> double time_front(bool cholesky, Block<T> L, Block<T> Ut, Block<T> C, int repeats, int team_size) {
  const idx W = (idx)L.shape(1), H = (idx)L.shape(0) - W, R = W + H;
  const off ldl = leading(L, "L"), ldu = leading(Ut, "Ut"), ldc = leading(C, "C");
  std::vector<T> l((size_t)R * W), ut((size_t)H * W), c((size_t)H * H);
  std::vector<idx> pivots(W);
  const PivotRule rule{1e-8, 1e-12};
  std::vector<PivotStats> stats(std::max(team_size, 1));
  const std::vector<PivotStats*> each = pointers(stats);
  double least = 1e300;
  nb::gil_scoped_release release;
  for (int r = 0; r < repeats; r++) {
    std::copy_n(L.data(), l.size(), l.begin());
    std::copy_n(Ut.data(), ut.size(), ut.begin());
    std::copy_n(C.data(), c.size(), c.begin());
    const auto body = [&](Loops& loops) {
      if (cholesky) cholesky_front<T>(loops, W, H, l.data(), R, {c.data(), H, strip_width(H, true)});
      else lu_front<T>(loops, W, H, l.data(), R, ut.data(), H, c.data(), H, pivots.data(), rule, each.data());
    };
    const Stopwatch watch;
    in_loops(team_size, body);
    least = std::min(least, watch.seconds());
  }
  return least;
}

// A child's block, whose row i is row rel[i] of the front, and columns begin .. end - 1 of the front. Without padding.
template <class T> void bind_add_child(Block<T> L, Block<T> Ut, Block<T> C, In<idx> rel, Block<const T> from, idx begin,
                                       idx end, bool one_triangle, bool assign) {
  const idx R = (idx)L.shape(0), W = (idx)L.shape(1), n_rows = (idx)rel.shape(0);
  Symbolic symbolic;
  symbolic.super_ptr = {0, W}, symbolic.row_ptr = {0, R - W};
  InStrips<T> strips(C.data(), R - W, R - W, one_triangle);
  std::vector<T> child(from.data(), from.data() + (off)n_rows * n_rows);
  InStrips<T> block(child.data(), n_rows, n_rows, one_triangle);
  const FrontBlocks<T> front{FrontShape(symbolic, 0), L.data(), Ut.data(), strips.get(), one_triangle};
  add_child(front, {begin, end}, n_rows, rel.data(), block.get(), assign);
}

template <class T> void bind_dense_of(nb::module_& m) {
  m.def("add_child", &bind_add_child<T>, "L"_a.noconvert(), "Ut"_a.noconvert(), "C"_a.noconvert(), "rel"_a.noconvert(),
        "block"_a.noconvert(), "begin"_a, "end"_a, "one_triangle"_a, "assign"_a);
  m.def("lu_front", &bind_lu<T>, "L"_a.noconvert(), "Ut"_a.noconvert(), "C"_a.noconvert(), "pivots"_a.noconvert(),
        "perturb_below"_a = 0.0, "tiny_below"_a = 0.0, "team_size"_a = 1);
  m.def("cholesky_front", &bind_cholesky<T>, "L"_a.noconvert(), "C"_a.noconvert(), "team_size"_a = 1);
  m.def("time_front", &time_front<T>, "cholesky"_a, "L"_a.noconvert(), "Ut"_a.noconvert(), "C"_a.noconvert(),
        "repeats"_a, "team_size"_a = 1);
  m.def("solve_front", &bind_solve<T>, "kind"_a, "L"_a.noconvert(), "Ut"_a.noconvert(), "x"_a.noconvert(),
        "y"_a.noconvert(), "conj"_a = false);
}

}  // namespace

void bind_dense(nb::module_& m) {
  for_scalars([&]<class T>(const char*) { bind_dense_of<T>(m); });
  m.def("set_simd_level", &set_simd_level, "level"_a, "For tests; 0 restores the best.");
}

}  // namespace gs
