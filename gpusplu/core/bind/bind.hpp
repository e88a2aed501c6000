// Shared by the binding files: array types, and conversion of vectors to NumPy arrays without a copy.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/scalars.hpp"
#include "bind/call.hpp"

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

// Hands a vector to NumPy; the array owns it.
template <class T, class Allocator> NumPy<T> to_numpy(std::vector<T, Allocator>&& v) {
  using Vector = std::vector<T, Allocator>;
  auto* heap = new Vector(std::move(v));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<Vector*>(p); });
  return NumPy<T>(heap->data(), {heap->size()}, owner);
}
// An array (count, size) that fill(rows) fills without the GIL.
template <class T, class Fill> nb::ndarray<nb::numpy, T> numpy_rows(std::size_t count, std::size_t size, Fill&& fill) {
  T* rows = new T[count * size + 1];
  nb::capsule owner(rows, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  const std::size_t shape[] = {count, size};
  without_gil([&] { fill(rows); });
  return nb::ndarray<nb::numpy, T>(rows, 2, shape, owner);
}
// A read-only view of a vector that `owner` keeps alive.
template <class T, class Allocator>
nb::ndarray<nb::numpy, const T, nb::ndim<1>> view_numpy(const std::vector<T, Allocator>& v, nb::handle owner) {
  return nb::ndarray<nb::numpy, const T, nb::ndim<1>>(v.data(), {v.size()}, owner);
}

// The member that a chain of member pointers designates, starting from the Python object of the first member's class.
template <class Class, class Value> Class class_of(Value Class::*);
template <auto first, auto... rest> const auto& member_of(nb::handle self) {
  return ((nb::cast<const decltype(class_of(first))&>(self).*first).*....*rest);
}
// For properties: a view of a vector, and of a vector of structs as bytes, to which Python gives a dtype.
template <auto... members> auto view_of(nb::handle self) { return view_numpy(member_of<members...>(self), self); }
template <auto... members> nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>> bytes_of(nb::handle self) {
  const auto& v = member_of<members...>(self);
  return {v.data(), {v.size() * sizeof(v[0])}, self};
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
void bind_costs(nb::module_&);
void bind_analyze(nb::module_&);
void bind_accuracy_policy(nb::module_&);
void bind_patterns(nb::module_&);
void bind_factor(nb::module_&);
void bind_fused(nb::module_&);
void bind_partial(nb::module_&);
void bind_plan(nb::module_&);
void bind_lockstep_plan(nb::module_&);
void bind_lockstep(nb::module_&);
void bind_columns(nb::module_&);
void bind_solve_schedule(nb::module_&);
void bind_column_groups(nb::module_&);
void bind_trailing_terms(nb::module_&);

}  // namespace gs
