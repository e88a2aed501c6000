// A factor as Python holds it.
#pragma once
#include <memory>

#include "bind/bind.hpp"
#include "numeric/factor.hpp"

namespace gs {

// It keeps the canonical pattern alive that the factor points into.
struct FactorBinding {
  nb::object canonical;
  std::unique_ptr<Factor> factor;
  off nnz, nvalues;  // entries of the canonical matrix, and values of the caller

  ~FactorBinding() {
    if (factor && factor->abandoned()) (void)factor.release();
  }
};

}  // namespace gs
