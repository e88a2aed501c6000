// Options by the names that callers pass, and the warnings of the accuracy policy.
#pragma once
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "analysis/analyze.hpp"
#include "certify/accuracy_policy.hpp"

namespace gs {

constexpr const char* inaccurate_solve = "overflow encountered in solve: the solution is not finite, or not accurate";
constexpr const char* inaccurate_inverse = "entries of the inverse are not finite, or not accurate";

template <class Option> Option option_of(const char* what, const std::string& name,
                                         std::initializer_list<std::pair<std::string_view, Option>> known) {
  std::string names;
  for (const auto& [each, option] : known) {
    if (each == name) return option;
    names += std::string(names.empty() ? "" : &each == &(known.end() - 1)->first ? " or " : ", ") + "'";
    names.append(each).append("'");
  }
  throw std::invalid_argument(std::string(what) + " must be " + names + ", got '" + name + "'");
}
inline Pivoting pivoting_of(const std::string& name) {
  return option_of<Pivoting>(
      "pivoting", name, {{"auto", Pivoting::automatic}, {"static", Pivoting::fixed}, {"partial", Pivoting::partial}});
}
inline Refine refine_of(const std::string& name) {
  return option_of<Refine>("refine", name,
                           {{"auto", Refine::automatic}, {"always", Refine::always}, {"never", Refine::never}});
}
inline std::string_view ordering_of(const std::string& name) {
  for (const std::string_view known : ordering_names())
    if (name == known) return known;
  throw std::invalid_argument("ordering='" + name + "' is unknown");
}

}  // namespace gs
