#include "base/fork.hpp"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <utility>

namespace gs {

// All locks. The mutex is held while the process forks, so that the child finds a consistent list.
struct Register {
  std::mutex mutex;
  UseLock* first = nullptr;

  void add(UseLock* one) {
    std::lock_guard lock(mutex);
    one->next_ = first;
    if (first) first->previous_ = one;
    first = one;
  }

  void remove(UseLock* one) {
    std::lock_guard lock(mutex);
    (one->previous_ ? one->previous_->next_ : first) = one->next_;
    if (one->next_) one->next_->previous_ = one->previous_;
  }

  void reset_after_fork() {
    new (&mutex) std::mutex;
    for (UseLock* one = first; one; one = one->next_) one->reset_after_fork();
  }
};

namespace {

constinit Register all;

[[maybe_unused]] const int registered =
    pthread_atfork([] { all.mutex.lock(); }, [] { all.mutex.unlock(); }, [] { all.reset_after_fork(); });

// Locks that this thread holds; further ones are not detected. Initial-exec as in threads.cpp.
struct Holding {
  static constexpr int most = 8;
  const UseLock* lock[most];
  int count;

  void add(const UseLock* one) {
    if (count < most) lock[count] = one;
    count++;
  }
  void remove(const UseLock* one) {
    const auto end = lock + std::min(count--, most), at = std::find(lock, end, one);
    if (at != end) *at = end[-1];
  }
  bool has(const UseLock* one) const {
    const auto end = lock + std::min(count, most);
    return std::find(lock, end, one) != end;
  }
};

__attribute__((tls_model("initial-exec"))) constinit thread_local Holding holding{};

}  // namespace

UseLock::UseLock() { all.add(this); }

UseLock::~UseLock() { all.remove(this); }

void UseLock::check() const {
  if (abandoned_) throw AbandonedError();
  if (holding.has(this)) throw BusyError();
}

UseLock::Exclusive::Exclusive(UseLock& owner) : owner_(owner) {
  owner.check();
  std::lock_guard turn(owner.turn_);
  lock_ = std::unique_lock(owner.use_);
  owner.changing_ = true;
  holding.add(&owner);
}

UseLock::Exclusive::~Exclusive() {
  owner_.changing_ = false;
  holding.remove(&owner_);
}

UseLock::Shared::Shared(UseLock& owner) : owner_(owner) {
  owner.check();
  std::lock_guard turn(owner.turn_);
  lock_ = std::shared_lock(owner.use_);
  holding.add(&owner);
}

void UseLock::Shared::unlock() {
  if (!lock_.owns_lock()) return;
  lock_.unlock();
  holding.remove(&owner_);
}

void UseLock::reset_after_fork() noexcept {
  abandoned_ = abandoned_ || changing_;
  new (&use_) std::shared_mutex;
  new (&turn_) std::mutex;
  new (&counts) std::mutex;
}

}  // namespace gs
