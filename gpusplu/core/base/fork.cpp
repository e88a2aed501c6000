#include "base/fork.hpp"

#include <pthread.h>

#include <new>

namespace gs {

// All objects to be renewed. Held while the process forks, so that the child finds it whole.
struct Register {
  std::mutex mutex;
  Renewed* first = nullptr;

  void add(Renewed* object) {
    std::lock_guard lock(mutex);
    object->next_ = first;
    if (first) first->previous_ = object;
    first = object;
  }

  void remove(Renewed* object) {
    std::lock_guard lock(mutex);
    (object->previous_ ? object->previous_->next_ : first) = object->next_;
    if (object->next_) object->next_->previous_ = object->previous_;
  }

  void renew() {
    new (&mutex) std::mutex;
    for (Renewed* object = first; object; object = object->next_) object->renew();
  }
};

namespace {

constinit Register all;

[[maybe_unused]] const int registered =
    pthread_atfork([] { all.mutex.lock(); }, [] { all.mutex.unlock(); }, [] { all.renew(); });

}  // namespace

Renewed::Renewed() { all.add(this); }

Renewed::~Renewed() { all.remove(this); }

UseLock::Exclusive::Exclusive(UseLock& owner) : owner_(owner) {
  std::lock_guard turn(owner.turn_);
  owner.check();
  lock_ = std::unique_lock(owner.use_);
  owner.changing_ = true;
}

std::shared_lock<std::shared_mutex> UseLock::together() {
  std::lock_guard turn(turn_);
  check();
  return std::shared_lock(use_);
}

void UseLock::renew() noexcept {
  abandoned_ = abandoned_ || changing_;
  new (&use_) std::shared_mutex;
  new (&turn_) std::mutex;
  new (&counts) std::mutex;
}

}  // namespace gs
