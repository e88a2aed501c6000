// Cache of analysed patterns, found by the contents of their index arrays.
//
// Everything but reading arrays needs the GIL, so there is no lock, and nothing to repair in a forked child. Dropped
// entries are destroyed last, because that may run any code.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "bind/bind.hpp"
#include "matrix/index_arrays.hpp"

namespace gs {

// Index arrays plus further parts of the key: `tag` is compared as Python does it.
struct PatternKey {
  nb::object tag;
  IndexArrays arrays;
  std::optional<std::uint64_t> hash = {};  // computed at first use
};

// A cached pattern.
class Known {
 public:
  Known(const PatternKey& key, nb::object value, off bytes, std::int64_t call);

  nb::object value;  // the cached result for the pattern; changed by `replace`
  void replace(nb::object what, off bytes);
  const std::int64_t call;  // number of the call that made it, from 1 on
  // Takes out a factor on the pattern, to be refactored, or None. The caller then is its only owner.
  nb::object take();

 private:
  friend class Patterns;
  bool has_tag_of(const PatternKey& key) const;
  bool is_of(const PatternKey& key) const;  // reads the arrays
  off bytes() const { return bytes_ + idle_bytes_; }

  const std::uint64_t hash_;
  const nb::object tag_;
  const IndexCopy arrays_;
  nb::object idle_ = nb::none();
  off bytes_;
  off idle_bytes_ = 0;
  bool listed_ = false;
};

// The most recently used ones within bounds of number and of bytes.
class Patterns {
 public:
  // Tests use fewer hash bits than 64 to get patterns with equal hashes.
  explicit Patterns(int hash_bits) : hash_bits_(hash_bits) {}

  std::int64_t hits = 0, misses = 0;
  // Null if it is not cached; counts hits and misses.
  std::shared_ptr<Known> find(PatternKey& key);
  // Counts the last hit as a miss because it was not usable.
  void miss() { hits--, misses++; }
  // Undoes the last hit because it was not usable; the same call searches again, so that it counts once.
  void retract_hit() { hits--; }
  // The same of a miss.
  void retract_miss() { misses--; }
  // Caches `value`, replacing an older one; `bytes` is its size.
  void keep(PatternKey& key, nb::object value, off bytes);
  // Stores a factor for the next take(), unless there is one or the pattern has been dropped.
  void give(Known& known, nb::object idle, off bytes);
  void clear();

  void set_limits(std::optional<off> entries, std::optional<off> bytes);
  off max_entries() const { return max_entries_; }
  off max_bytes() const { return max_bytes_; }
  off size() const { return (off)entries_.size(); }
  off bytes() const;

 private:
  using Entries = std::list<std::shared_ptr<Known>>;
  void hash(PatternKey& key) const;
  std::shared_ptr<Known> search(PatternKey& key) const;
  void forget(const std::shared_ptr<Known>& known);
  Entries cut();  // removes the least recently used entries until the rest is in bounds; the caller destroys them

  Entries entries_;  // the most recently used first
  off max_entries_ = 64, max_bytes_ = off(1) << 28;
  const int hash_bits_;
};

// Memory of a pattern's analysis [bytes].
struct Canonical;
struct Symbolic;
off bytes_of(const Canonical& canonical);
off bytes_of(const Symbolic& symbolic);

// The number types of values and indices, encoded as one number.
template <class T, class I>
constexpr int form_of = (is_complex<T> ? 8 : 0) + (int)sizeof(real_t<T>) / 2 + (sizeof(I) == 8);

template <class I> IndexArrays index_arrays(off n, int form, const In<I>& first, const In<I>& second) {
  return {n, form, {first.data(), second.data()}, {first.shape(0) * sizeof(I), second.shape(0) * sizeof(I)}};
}

}  // namespace gs
