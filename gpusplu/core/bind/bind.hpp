// Shared by the binding files: array types, and conversion of vectors to NumPy arrays without a copy.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "bind/call.hpp"
#include "matrix/canonical.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gs {

template <class T> using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using NumPy = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// Python objects with element types that appear in the stub.
template <class... T> using Tuple = nb::typed<nb::tuple, T...>;
using State = Tuple<nb::any, nb::ellipsis>;  // pickle state
using Dict = nb::typed<nb::dict, nb::str, nb::any>;

// What NumPy sees of a vector's elements: numbers as they are, structs as bytes, to which Python gives a dtype.
template <class T> using Element = std::conditional_t<std::is_arithmetic_v<T> || is_complex<T>, T, std::uint8_t>;
template <class T, class Vector> nb::ndarray<nb::numpy, T, nb::ndim<1>> numpy_of(Vector& v, nb::handle owner) {
  return {v.data(), {v.size() * sizeof(v[0]) / sizeof(T)}, owner};
}
// Hands a vector to NumPy; the array owns it.
template <class T, class Allocator> NumPy<Element<T>> to_numpy(std::vector<T, Allocator>&& v) {
  using Vector = std::vector<T, Allocator>;
  auto* heap = new Vector(std::move(v));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<Vector*>(p); });
  return numpy_of<Element<T>>(*heap, owner);
}
// An array (count, size) that fill(rows) fills without the GIL.
template <class T, class Fill> nb::ndarray<nb::numpy, T> numpy_rows(std::size_t count, std::size_t size, Fill&& fill) {
  T* rows = new T[count * size + 1];
  nb::capsule owner(rows, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  const std::size_t shape[] = {count, size};
  without_gil([&] { fill(rows); });
  return nb::ndarray<nb::numpy, T>(rows, 2, shape, owner);
}

// The name of a member. Compilers end the signature with it: "[with auto member = &Class::name]".
template <auto member> constexpr std::string_view name_of() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("member = "));
  name = name.substr(0, name.find_first_of(";]"));
  return name.substr(name.rfind(':') + 1);
}
template <class T> constexpr bool is_vector = false;
template <class T, class Allocator> constexpr bool is_vector<std::vector<T, Allocator>> = true;

// The member that a chain of member pointers designates, starting from the Python object of the first member's class.
template <class Class, class Value> Class class_of(Value Class::*);
template <auto first, auto... rest> const auto& member_of(nb::handle self) {
  return ((nb::cast<const decltype(class_of(first))&>(self).*first).*....*rest);
}
// For properties: a read-only view of a vector.
template <auto... members> auto view_of(nb::handle self) {
  const auto& v = member_of<members...>(self);
  return numpy_of<const Element<typename std::remove_cvref_t<decltype(v)>::value_type>>(v, self);
}
// Members of a struct. A plus sign makes getters function pointers, which nanobind compiles once per signature.
template <auto... members> struct Members {
  static constexpr std::size_t count = sizeof...(members);
  // each<member>() of every one.
  template <class Each> static void visit(Each&& each) { (each.template operator()<members>(), ...); }
  // Read-only properties by their names: views of vectors, values of others and of functions.
  template <class Class> static nb::class_<Class>& define(nb::class_<Class>& bound) {
    visit([&]<auto member>() {
      const std::string name(name_of<member>());
      using Value = std::remove_cvref_t<std::invoke_result_t<decltype(member), const Class&>>;
      if constexpr (is_vector<Value>) bound.def_prop_ro(name.c_str(), &view_of<member>);
      else
        bound.def_prop_ro(
            name.c_str(), +[](const Class& self) -> Value { return std::invoke(member, self); });
    });
    return bound;
  }
};
template <auto... members, class Class> nb::class_<Class>& def_members(nb::class_<Class>& bound) {
  return Members<members...>::define(bound);
}
// Sets members of a struct by their names; others are a TypeError.
template <auto... members, class Class> void set_members(Class& to, const nb::kwargs& named) {
  for (const auto& [key, value] : named) {
    const std::string name = nb::cast<std::string>(key);
    const auto set = [&]<auto member>() {
      if (name != name_of<member>()) return false;
      to.*member = nb::cast<std::remove_cvref_t<decltype(to.*member)>>(value);
      return true;
    };
    if (!(set.template operator()<members>() || ...)) throw nb::type_error(("there is no '" + name + "'").c_str());
  }
}
// A dict of members of a struct, by their names; arrays own vectors.
template <auto... members, class Class> Dict dict_of(Class&& from) {
  nb::dict out;
  Members<members...>::visit([&]<auto member>() {
    constexpr std::string_view name = name_of<member>();
    auto& value = from.*member;
    const nb::str key(name.data(), name.size());
    if constexpr (is_vector<std::remove_cvref_t<decltype(value)>>) out[key] = to_numpy(std::move(value));
    else out[key] = value;
  });
  return out;
}

template <class T> std::vector<T> to_vector(const In<T>& array) {
  return {array.data(), array.data() + array.shape(0)};
}

// (ptr, ind, values) of compressed columns; the arrays own them.
template <class T> Tuple<NumPy<off>, NumPy<idx>, NumPy<T>> matrix_tuple(Matrix<T>&& A) {
  return nb::make_tuple(to_numpy(std::move(A.pattern.ptr)), to_numpy(std::move(A.pattern.ind)),
                        to_numpy(std::move(A.values)));
}

// Of a type known at run time.
inline nb::object to_numpy(Values&& values) {
  return std::visit([](auto&& v) { return nb::cast(to_numpy(std::move(v))); }, std::move(values));
}
inline Tuple<NumPy<off>, NumPy<idx>, nb::ndarray<nb::numpy, nb::ndim<1>>> matrix_tuple(AnyMatrix&& A) {
  return nb::make_tuple(to_numpy(std::move(A.pattern.ptr)), to_numpy(std::move(A.pattern.ind)),
                        to_numpy(std::move(A.values)));
}
using AnyIn = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The number type of a character of NumPy's.
inline Dtype dtype_named(const std::string& name) {
  const std::size_t k = std::string_view("fdFD").find(name);
  if (name.size() != 1 || k == std::string_view::npos)
    throw std::invalid_argument("dtype must be one of f, d, F, D, got '" + name + "'");
  return (Dtype)k;
}
inline nb::dlpack::dtype numpy_type(Dtype dtype) {
  return with_scalar(dtype, []<class T>(T) { return nb::dtype<T>(); });
}
// The type of an array's numbers. Others are a TypeError, as are arguments of other types.
template <class Array> Dtype type_of(const Array& array) {
  for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::complex64, Dtype::complex128})
    if (array.dtype() == numpy_type(dtype)) return dtype;
  throw nb::next_overload();
}
// An argument that has numbers of this type, or is converted to them; others are a TypeError.
template <class... Shape> auto numbers_in(nb::handle given, Dtype dtype, bool convert = true) {
  using Array = nb::ndarray<nb::ro, Shape..., nb::device::cpu>;
  return with_scalar(dtype, [&]<class T>(T) {
    nb::ndarray<const T, Shape..., nb::device::cpu> array;
    if (!nb::try_cast(given, array, convert)) throw nb::next_overload();
    return Array(array);
  });
}

// A factor as Python holds it, with the canonical pattern that it points into.
template <class F> struct Bound {
  nb::object canonical;
  std::unique_ptr<F> factor;

  ~Bound() {
    if (factor && factor->abandoned()) (void)factor.release();
  }
  const Canonical& pattern() const { return nb::cast<const Canonical&>(canonical); }
  off nnz() const { return pattern().pattern.view().nnz(); }  // of the canonical matrix
  off nvalues() const { return pattern().nvalues; }           // of the caller
};

// The result of a method of a factor. Runs without the GIL: a thread that changes the factor holds its lock and takes
// the GIL now and then.
template <auto method> auto asked(const Bound<decltype(class_of(method))>& self) {
  auto found = without_gil([&] { return std::invoke(method, *self.factor); });
  using Found = decltype(found);
  if constexpr (is_vector<Found> || std::is_same_v<Found, Values>) return to_numpy(std::move(found));
  else if constexpr (std::is_same_v<Found, AnyMatrix>) return matrix_tuple(std::move(found));
  else return found;
}

// Calls bind<T>(dtype character) for all number types; overloads are tried in this order.
template <class Bind> void for_scalars(Bind&& bind) {
  bind.template operator()<double>("d");
  bind.template operator()<float>("f");
  bind.template operator()<std::complex<float>>("F");
  bind.template operator()<std::complex<double>>("D");
}

bool find_main_thread();  // runs Python code; false if that raised
void bind_interrupts(nb::module_&);
void bind_held_signals(nb::module_&);
void bind_threads(nb::module_&);
void bind_matrix(nb::module_&);
void bind_symbolic(nb::module_&);
void bind_analyze(nb::module_&);
void bind_accuracy_policy(nb::module_&);
void bind_patterns(nb::module_&);
void bind_factor(nb::module_&);
void bind_fused(nb::module_&);
void bind_partial(nb::module_&);
void bind_lockstep(nb::module_&);
namespace gpu {
void bind_plan(nb::module_&);
void bind_columns(nb::module_&);
}  // namespace gpu

}  // namespace gs
