#include "matrix/index_arrays.hpp"

#include "base/hash.hpp"

namespace gs {

std::uint64_t IndexArrays::hash() const {
  const off about[] = {n, form, (off)size[0]};
  Hash hash;
  hash.add(about, sizeof about);
  for (const int k : {0, 1}) hash.add(data[k], size[k]);
  return hash.value();
}

}  // namespace gs
