// Patterns that were analysed, found again by the content of their index arrays.
//
// All of it is touched with the GIL only, but for reading arrays: so there is no lock, and nothing to mend in a forked
// child. What is dropped is destroyed last, because that may run any code.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "bind/bind.hpp"
#include "matrix/index_arrays.hpp"

namespace gs {

// Index arrays with what else a pattern is known by: `tag` is compared as Python does it.
struct PatternKey {
  nb::object tag;
  IndexArrays arrays;
  std::optional<std::uint64_t> hash = {};  // once it was needed
};

// One that is remembered.
class Known {
 public:
  Known(const PatternKey& key, nb::object value, off bytes, std::int64_t call);

  nb::object value;         // what was found about the pattern
  const std::int64_t call;  // that found it, from 1 on
  // A factor on the pattern whose memory may be used, or None. Whoever takes it has it alone.
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
  const off bytes_;
  off idle_bytes_ = 0;
  bool listed_ = false;
};

// The most recently used ones within bounds of number and of bytes.
class Patterns {
 public:
  // Fewer bits than 64 of a hash: for tests, of patterns with the same.
  explicit Patterns(int hash_bits) : hash_bits_(hash_bits) {}

  std::int64_t hits = 0, misses = 0;
  // Null if it is not there; counted.
  std::shared_ptr<Known> find(PatternKey& key);
  // Counts what was found last as missed: it was of no use.
  void miss() { hits--, misses++; }
  // What was found last was of no use, and the same call is going to look again: it counts once.
  void retract_hit() { hits--; }
  // Remembers `value`, in the place of an older one; `bytes` is its size.
  void keep(PatternKey& key, nb::object value, off bytes);
  // Leaves a factor to the next who takes it, unless there is one or the pattern has been dropped.
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
  Entries cut();  // takes the least recently used ones out, for the caller to destroy, until the rest is in bounds

  Entries entries_;  // the last used first
  off max_entries_ = 64, max_bytes_ = off(1) << 28;
  const int hash_bits_;
};

// Of what a pattern's analysis holds [bytes].
struct Canonical;
struct Symbolic;
off bytes_of(const Canonical& canonical);
off bytes_of(const Symbolic& symbolic);

// The number types of values and indices, as one number.
template <class T, class I>
constexpr int form_of = (is_complex<T> ? 8 : 0) + (int)sizeof(real_t<T>) / 2 + (sizeof(I) == 8);

template <class I> IndexArrays index_arrays(off n, int form, const In<I>& first, const In<I>& second) {
  return {n, form, {first.data(), second.data()}, {first.shape(0) * sizeof(I), second.shape(0) * sizeof(I)}};
}

}  // namespace gs
