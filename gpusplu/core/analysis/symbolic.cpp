#include "analysis/symbolic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/scalars.hpp"

namespace gs {

bool cut_scales(Symbolic& symbolic, int largest_exponent) {
  const double largest = std::ldexp(1.0, largest_exponent);
  bool any = false;
  for (std::vector<double>* scales : {&symbolic.row_scale, &symbolic.col_scale})
    for (double& scale : *scales) {
      const double cut = std::clamp(scale, 1 / largest, largest);
      any |= std::exchange(scale, cut) != cut;
    }
  return any;
}

template <class T> std::shared_ptr<const Symbolic> with_scales_of(std::shared_ptr<const Symbolic> symbolic) {
  const double largest = std::ldexp(1.0, largest_scale_exponent<T>);
  const auto fits = [&](double scale) { return scale >= 1 / largest && scale <= largest; };
  if (std::all_of(symbolic->row_scale.begin(), symbolic->row_scale.end(), fits) &&
      std::all_of(symbolic->col_scale.begin(), symbolic->col_scale.end(), fits))
    return symbolic;
  auto cut_off = std::make_shared<Symbolic>(*symbolic);
  cut_scales(*cut_off, largest_scale_exponent<T>);
  return cut_off;
}

#define GS_INSTANTIATE(T) template std::shared_ptr<const Symbolic> with_scales_of<T>(std::shared_ptr<const Symbolic>);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
