// An object that is kept for reuse.
#pragma once
#include <atomic>
#include <memory>

namespace gs {

// A caller that finds it in use makes a new object. Lock-free: no lock may be held across a fork.
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
