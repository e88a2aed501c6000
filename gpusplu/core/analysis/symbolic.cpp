#include "analysis/symbolic.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/scalars.hpp"
#include "matrix/scales.hpp"

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
  if constexpr (std::is_same_v<real_t<T>, double>) return symbolic;  // scales of any type are in its range
  const double largest = std::ldexp(1.0, largest_scale_exponent<T>);
  const auto fit = [&](const std::vector<double>& scale) {
    const ScaleRange range = range_of(scale);
    return range.least >= 1 / largest && range.largest <= largest;
  };
  if (fit(symbolic->row_scale) && fit(symbolic->col_scale)) return symbolic;
  auto cut_off = std::make_shared<Symbolic>(*symbolic);
  cut_scales(*cut_off, largest_scale_exponent<T>);
  return cut_off;
}

#define GS_INSTANTIATE(T) template std::shared_ptr<const Symbolic> with_scales_of<T>(std::shared_ptr<const Symbolic>);
GS_FOR_SCALARS(GS_INSTANTIATE)

}  // namespace gs
