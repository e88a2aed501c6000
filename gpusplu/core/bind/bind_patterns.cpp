#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "analysis/analyze.hpp"
#include "analysis/symbolic.hpp"
#include "base/host_memory.hpp"
#include "base/kept_memory.hpp"
#include "base/types.hpp"
#include "bind/checks.hpp"
#include "bind/patterns.hpp"
#include "matrix/canonical.hpp"

namespace gs {
namespace {

constexpr std::size_t worth_the_gil = 1 << 16;  // bytes; for fewer, releasing the GIL costs more than it gains

template <class Work> auto reading(std::size_t bytes, Work&& work) {
  return bytes < worth_the_gil ? work() : without_gil(std::forward<Work>(work));
}

template <class Vector> off size_of(const Vector& v) { return (off)(v.size() * sizeof(v[0])); }

}  // namespace

Known::Known(const PatternKey& key, nb::object what, off bytes, std::int64_t number)
    : value(std::move(what)),
      call(number),
      hash_(key.hash.value()),
      tag_(key.tag),
      arrays_(reading(key.arrays.bytes(), [&] { return IndexCopy(key.arrays); })),
      bytes_(bytes + (off)arrays_.bytes()) {}

void Known::replace(nb::object what, off bytes) {
  value = std::move(what);
  bytes_ = bytes + (off)arrays_.bytes();
}

nb::object Known::take() {
  idle_bytes_ = 0;
  nb::object idle = nb::none();
  std::swap(idle, idle_);
  return idle;
}

bool Known::has_tag_of(const PatternKey& key) const { return tag_.is(key.tag) || tag_.equal(key.tag); }

bool Known::is_of(const PatternKey& key) const {
  return reading(key.arrays.bytes(), [&] { return arrays_.is_of(key.arrays); });
}

void Patterns::hash(PatternKey& key) const {
  if (key.hash) return;
  const std::uint64_t hash = reading(key.arrays.bytes(), [&] { return key.arrays.hash(); });
  key.hash = hash_bits_ >= 64 ? hash : hash & ((std::uint64_t(1) << hash_bits_) - 1);
}

// The pattern used last is usually used again, and a different one differs early: compare it before hashing.
std::shared_ptr<Known> Patterns::search(PatternKey& key) const {
  const std::shared_ptr<Known> last = entries_.empty() ? nullptr : entries_.front();
  if (last && last->has_tag_of(key) && last->is_of(key)) return last;
  hash(key);
  std::vector<std::shared_ptr<Known>> candidates;  // the list may change while the arrays are compared
  for (const auto& known : entries_)
    if (known != last && known->hash_ == key.hash && known->has_tag_of(key)) candidates.push_back(known);
  for (const auto& known : candidates)
    if (known->is_of(key)) return known;
  return nullptr;
}

std::shared_ptr<Known> Patterns::find(PatternKey& key) {
  std::shared_ptr<Known> known = search(key);
  (known ? hits : misses)++;
  const auto place = known ? std::find(entries_.begin(), entries_.end(), known) : entries_.end();
  if (place != entries_.end()) entries_.splice(entries_.begin(), entries_, place);
  return known;
}

void Patterns::keep(PatternKey& key, nb::object value, off bytes) {
  const std::shared_ptr<Known> before = search(key);
  if (before) forget(before);
  const off size = bytes + (off)key.arrays.bytes();
  if (size > max_bytes_ || max_entries_ < 1) return;  // rather keep the other patterns than this one
  hash(key);
  auto known = std::make_shared<Known>(key, std::move(value), bytes, hits + misses);
  known->listed_ = true;
  entries_.push_front(known);
  const Entries dropped = cut();
}

void Patterns::give(Known& known, nb::object idle, off bytes) {
  if (!known.listed_ || !known.idle_.is_none() || known.bytes_ + bytes > max_bytes_) return;
  known.idle_ = std::move(idle);
  known.idle_bytes_ = bytes;
  const Entries dropped = cut();
}

void Patterns::forget(const std::shared_ptr<Known>& known) {
  known->listed_ = false;
  entries_.remove(known);
  const nb::object idle = known->take();
}

Patterns::Entries Patterns::cut() {
  Entries dropped;
  off held = bytes();
  while (!entries_.empty() && ((off)entries_.size() > max_entries_ || held > max_bytes_)) {
    held -= entries_.back()->bytes();
    entries_.back()->listed_ = false;
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
  return dropped;
}

void Patterns::clear() {
  Entries dropped;
  dropped.swap(entries_);
  hits = misses = 0;
  for (const auto& known : dropped) known->listed_ = false;
  for (const auto& known : dropped) const nb::object idle = known->take();
}

void Patterns::set_limits(std::optional<off> entries, std::optional<off> bytes) {
  max_entries_ = entries.value_or(max_entries_);
  max_bytes_ = bytes.value_or(max_bytes_);
  const Entries dropped = cut();
}

off Patterns::bytes() const {
  off sum = 0;
  for (const auto& known : entries_) sum += known->bytes();
  return sum;
}

off bytes_of(const Canonical& c) {
  return size_of(c.pattern.ptr) + size_of(c.pattern.ind) + size_of(c.source) + size_of(c.source_ptr);
}

off bytes_of(const Symbolic& s) {
  off bytes = 0;
  for (const auto* v : {&s.row_perm, &s.col_perm, &s.block_ptr, &s.parent, &s.col_count, &s.super_ptr, &s.super_parent,
                        &s.row_ind, &s.rel_ind})
    bytes += size_of(*v);
  return bytes + size_of(s.row_scale) + size_of(s.col_scale) + size_of(s.row_ptr);
}

namespace {

template <class T> bool fits(const Symbolic& symbolic, const Canonical& canonical, In<T> values, bool symmetric) {
  const PatternView A = canonical.pattern.view();
  require_entries(values, A.nnz(), "values");
  require_analysis_of(A, symbolic);
  return without_gil([&] { return analysis_is_compatible(A, values.data(), symbolic, symmetric); });
}

template <class I> void bind_find(nb::class_<Patterns>& patterns) {
  const auto key = [](nb::object tag, off n, const In<I>& first, const In<I>& second) {
    return PatternKey{std::move(tag), index_arrays(n, (int)sizeof(I), first, second)};
  };
  patterns
      .def(
          "find",
          [key](Patterns& self, nb::object tag, off n, In<I> first, In<I> second) {
            PatternKey seen = key(std::move(tag), n, first, second);
            auto known = self.find(seen);
            return known ? std::optional(std::move(known)) : std::nullopt;
          },
          "tag"_a.none(), "n"_a, "first"_a.noconvert(), "second"_a.noconvert())
      .def(
          "keep",
          [key](Patterns& self, nb::object tag, off n, In<I> first, In<I> second, nb::object value, off bytes) {
            PatternKey seen = key(std::move(tag), n, first, second);
            self.keep(seen, std::move(value), bytes);
          },
          "tag"_a.none(), "n"_a, "first"_a.noconvert(), "second"_a.noconvert(), "value"_a, "bytes"_a);
}

template <class T> void bind_fits(nb::module_& m) {
  m.def("analysis_is_compatible", &fits<T>, "symbolic"_a, "canonical"_a, "values"_a.noconvert(), "symmetric"_a = false,
        "Whether an analysis that was made of older values suits these; see core/analysis/analyze.hpp.");
}

}  // namespace

void bind_patterns(nb::module_& m) {
  nb::class_<Known>(m, "Known").def_ro("value", &Known::value).def_ro("call", &Known::call).def("take", &Known::take);
  nb::class_<Patterns> patterns(m, "Patterns");
  patterns.def(nb::init<int>(), "hash_bits"_a = 64)
      .def("give", &Patterns::give, "known"_a, "idle"_a, "bytes"_a)
      .def("miss", &Patterns::miss)
      .def("retract_hit", &Patterns::retract_hit)
      .def("clear", &Patterns::clear)
      .def("set_limits", &Patterns::set_limits, "entries"_a = nb::none(), "bytes"_a = nb::none())
      .def_ro("hits", &Patterns::hits)
      .def_ro("misses", &Patterns::misses)
      .def_prop_ro("max_entries", &Patterns::max_entries)
      .def_prop_ro("max_bytes", &Patterns::max_bytes)
      .def_prop_ro("bytes", &Patterns::bytes)
      .def("__len__", &Patterns::size);
  bind_find<std::int32_t>(patterns);
  bind_find<std::int64_t>(patterns);
  m.def(
      "free_host_memory",
      []() -> std::optional<off> {
        const off free = free_host_memory();
        return free < std::numeric_limits<off>::max() ? std::optional(free) : std::nullopt;
      },
      "Bytes that this process may still use; None if the system does not say it.");
  m.def("drop_kept_memory", &drop_kept_memory,
        "Give back what is kept of freed arrays; see core/base/kept_memory.hpp.");
  m.def(
      "bytes_of", [](const Canonical& canonical) { return bytes_of(canonical); }, "of"_a);
  m.def(
      "bytes_of", [](const Symbolic& symbolic) { return bytes_of(symbolic); }, "of"_a);
  for_scalars([&]<class T>(const char*) { bind_fits<T>(m); });
}

}  // namespace gs
