// An object that is kept for the next who needs one.
#pragma once
#include <atomic>
#include <memory>

namespace gs {

// Whoever comes while it is taken makes one himself. Without a lock: nothing can be held across a fork.
template <class T> class Reusable {
 public:
  Reusable() = default;
  ~Reusable() { delete kept_.load(); }
  Reusable(Reusable&& other) noexcept : kept_(other.take().release()) {}
  Reusable& operator=(Reusable&& other) noexcept {
    keep(other.take());
    return *this;
  }
  std::unique_ptr<T> take() { return std::unique_ptr<T>(kept_.exchange(nullptr, std::memory_order_acquire)); }
  void keep(std::unique_ptr<T> object) { delete kept_.exchange(object.release(), std::memory_order_acq_rel); }

 private:
  std::atomic<T*> kept_{nullptr};
};

}  // namespace gs
