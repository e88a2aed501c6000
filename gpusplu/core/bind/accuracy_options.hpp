// Options of the accuracy policy by the names that callers pass, and its warnings.
#pragma once
#include <stdexcept>
#include <string>

#include "certify/accuracy_policy.hpp"

namespace gs {

constexpr const char* inaccurate_solve = "overflow encountered in solve: the solution is not finite, or not accurate";
constexpr const char* inaccurate_inverse = "entries of the inverse are not finite, or not accurate";

inline Pivoting pivoting_of(const std::string& name) {
  if (name == "auto") return Pivoting::automatic;
  if (name == "static") return Pivoting::fixed;
  if (name == "partial") return Pivoting::partial;
  throw std::invalid_argument("pivoting must be 'auto', 'static' or 'partial', got '" + name + "'");
}

inline Refine refine_of(const std::string& name) {
  if (name == "auto") return Refine::automatic;
  if (name == "always") return Refine::always;
  if (name == "never") return Refine::never;
  throw std::invalid_argument("refine must be 'auto', 'always' or 'never', got '" + name + "'");
}

}  // namespace gs
