#include "matrix/scale_range.hpp"

#include <algorithm>
#include <cstddef>

namespace gs {

ScaleRange range_of(const std::vector<double>& scale) {
  if (scale.empty()) return {};
  constexpr std::size_t chains = 8;  // independent chains, because each comparison takes a few cycles
  double least[chains], largest[chains];
  std::fill_n(least, chains, scale[0]), std::fill_n(largest, chains, scale[0]);
  std::size_t k = 0;
  for (; k + chains <= scale.size(); k += chains)
    for (std::size_t c = 0; c < chains; c++) {
      const double s = scale[k + c];
      least[c] = s < least[c] ? s : least[c];
      largest[c] = s > largest[c] ? s : largest[c];
    }
  for (; k < scale.size(); k++) least[0] = std::min(least[0], scale[k]), largest[0] = std::max(largest[0], scale[k]);
  return {*std::min_element(least, least + chains), *std::max_element(largest, largest + chains)};
}

}  // namespace gs
