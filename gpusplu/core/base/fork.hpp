// What a fork leaves behind: the child has one thread, and what others were at stays as they had it at that moment.
//
// The core has no lock that is held across a fork. Locks live in objects that are renewed in the child (here), or on
// the stacks of the threads that use them, which the child never sees; the pool of threads starts anew (threads.cpp).
#pragma once
#include <mutex>
#include <shared_mutex>
#include <stdexcept>

namespace gs {

// An object whose renew() a forked child calls before anything else.
class ResetAfterFork {
 public:
  ResetAfterFork();
  ResetAfterFork(const ResetAfterFork&) = delete;
  ResetAfterFork& operator=(const ResetAfterFork&) = delete;

 protected:
  virtual ~ResetAfterFork();
  virtual void reset_after_fork() noexcept = 0;

 private:
  friend struct Register;
  ResetAfterFork *next_ = nullptr, *previous_ = nullptr;
};

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

// Of an object that many read and one changes. A child finds all locks free; what another thread was changing at the
// fork is of no use there, and whoever asks for it gets an AbandonedError.
//
// A call that holds the lock may be interrupted by a handler (operation.hpp), which would wait for its own thread if it
// asked for the object: that is a BusyError.
class UseLock : ResetAfterFork {
 public:
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
  std::mutex counts;  // for those who share, about what they count

 private:
  void reset_after_fork() noexcept override;
  void check() const;

  std::shared_mutex use_;
  std::mutex turn_;  // taken before use_, so that those who read cannot starve one who changes
  bool changing_ = false, abandoned_ = false;
};

}  // namespace gs
