#include "numeric/slogdet.hpp"

#include <cmath>

#include "base/scalars.hpp"

namespace gs {
namespace {

// A product of many factors.
template <class T> struct LogProduct {
  T sign = 1;
  double log_modulus = 0;
  void multiply(T factor) {
    log_modulus += std::log((double)std::abs(factor));
    sign *= factor / T(std::abs(factor));
  }
};

// From D, with blocks of order 1 and 2.
template <class T> std::pair<T, double> slogdet_of_pivots(const Factor<T>& f, bool hermitian) {
  const std::vector<T> d = f.diagonal(), e = f.below_diagonal();
  LogProduct<T> all;
  for (std::size_t k = 0; k < d.size(); k++) {
    if (e[k] == T(0)) {
      all.multiply(d[k]);
      continue;
    }
    const T conj_e = conj_if(e[k], hermitian);
    all.multiply(d[k] / conj_e * (d[k + 1] / e[k]) - T(1));
    all.multiply(e[k]), all.multiply(conj_e);
    k++;
  }
  if (is_complex<T> && hermitian) all.sign = T(std::real(all.sign) > 0 ? 1 : -1);
  return {all.sign, all.log_modulus};
}

}  // namespace

template <class T> std::pair<T, double> slogdet(const Factor<T>& f) {
  const FactorSummary summary = f.summary();
  if (summary.symbolic->ldlt) return slogdet_of_pivots(f, summary.hermitian);
  const bool cholesky = summary.symbolic->cholesky;
  LogProduct<T> all;
  for (const T& d : f.diagonal()) all.multiply(d);
  if (cholesky) return {T(1), 2 * all.log_modulus};
  return {all.sign * T((real_t<T>)f.sign_of_permutations()), all.log_modulus};
}

#define GS_INSTANTIATE(T) template std::pair<T, double> slogdet(const Factor<T>&);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
