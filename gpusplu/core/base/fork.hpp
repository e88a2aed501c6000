// State after a fork: the child has one thread, and what other threads were changing stays as it was at that moment.
//
// The core holds no lock across a fork. Locks live in objects that are reset in the child (here), or on the stacks of
// the threads that use them, which the child never sees; the thread pool starts again (threads.cpp).
#pragma once
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

namespace gs {

struct AbandonedError : std::runtime_error {
  AbandonedError()
      : std::runtime_error(
            "another thread was changing this factor when the process forked, so this child has it half changed; "
            "factor the matrix again") {}
};

struct BusyError : std::runtime_error {
  BusyError()
      : std::runtime_error(
            "the call that this handler interrupts is using the factor; it can be asked once that call has returned") {}
};

// A lock for an object with many readers and one writer. A child finds all locks free; an object that another thread
// was changing at the fork is unusable in the child, and locking it raises AbandonedError.
//
// A handler may interrupt the call that holds the lock (operation.hpp). If the handler uses the object, it would wait
// for its own thread, so it gets a BusyError instead.
class UseLock {
 public:
  UseLock();
  UseLock(const UseLock&) = delete;
  UseLock& operator=(const UseLock&) = delete;
  ~UseLock();

  class Exclusive {
   public:
    explicit Exclusive(UseLock& owner);
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    UseLock& owner_;
    std::unique_lock<std::shared_mutex> lock_;
  };

  class Shared {
   public:
    explicit Shared(UseLock& owner);
    Shared(Shared&& other) noexcept : owner_(other.owner_), lock_(std::move(other.lock_)) {}
    Shared& operator=(Shared&&) = delete;
    ~Shared() { unlock(); }
    void unlock();

   private:
    UseLock& owner_;
    std::shared_lock<std::shared_mutex> lock_;
  };

  Shared together() { return Shared(*this); }
  Exclusive exclusive() { return Exclusive(*this); }
  bool abandoned() const { return abandoned_; }
  std::mutex counts;  // protects the count of readers

 private:
  friend struct Register;
  void reset_after_fork() noexcept;
  void check() const;

  std::shared_mutex use_;
  std::mutex turn_;  // taken before use_, so that readers cannot starve a writer
  bool changing_ = false, abandoned_ = false;
  UseLock *next_ = nullptr, *previous_ = nullptr;  // in the list of all, which a forked child resets
};

}  // namespace gs
