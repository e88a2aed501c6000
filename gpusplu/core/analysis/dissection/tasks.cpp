#include "analysis/dissection/tasks.hpp"

#include <algorithm>
#include <chrono>
#include <deque>

#include "analysis/dissection/graph.hpp"
#include "base/threads.hpp"

namespace gs::nd {

void Tasks::offer(Task& task) {
  bool wake;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    pending_.push_back(&task);
    n_pending_ = (int)pending_.size();
    wake = takers_.sleepers > 0;
  }
  if (wake) takers_.wakes.notify_one();
}

Tasks::Task* Tasks::take_largest() {
  if (pending_.empty()) return nullptr;
  auto largest = std::max_element(pending_.begin(), pending_.end(), [](Task* a, Task* b) { return a->size < b->size; });
  Task* task = *largest;
  pending_.erase(largest);
  n_pending_ = (int)pending_.size();
  task->state = taken;
  return task;
}

void Tasks::run(Task& task, Workspace& ws, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  try_to(task.body, ws);
  lock.lock();
  task.state = done;
  if (takers_.sleepers) takers_.wakes.notify_all();  // a thread that waits for this task may be among them
  if (waiters_.sleepers) waiters_.wakes.notify_all();
}

bool Tasks::withdraw(Task& task) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (task.state != pending) return false;
  std::erase(pending_, &task);
  n_pending_ = (int)pending_.size();
  task.state = done;
  return true;
}

template <class Ready> void Tasks::pause(Bed& bed, std::unique_lock<std::mutex>& lock, const Ready& ready) {
  constexpr int polls = 1000;  // about 30 us
  lock.unlock();
  for (int poll = 0; poll < polls && !ready(); poll++) relax(poll);
  lock.lock();
  if (ready()) return;
  bed.sleepers++;
  if (!detail::progress_point.caller) {
    bed.wakes.wait(lock);
  } else if (bed.wakes.wait_for(lock, std::chrono::milliseconds(10)) == std::cv_status::timeout) {
    lock.unlock();
    must_stop();  // running tasks then end soon
    lock.lock();
  }
  bed.sleepers--;
}

void Tasks::join(Task& task, Workspace& ws, bool help) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (task.state == pending) {
    std::erase(pending_, &task);
    n_pending_ = (int)pending_.size();
    task.state = taken;
    run(task, ws, lock);
  }
  while (task.state != done) {
    if (Task* other = help ? take_largest() : nullptr) run(*other, ws, lock);
    else pause(help ? takers_ : waiters_, lock, [&] { return task.state == done || (help && n_pending_ > 0); });
  }
}

void Tasks::try_to(const std::function<void(Workspace&)>& body, Workspace& ws) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (error_) return;
  }
  try {
    body(ws);
  } catch (...) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void Tasks::rethrow() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void Tasks::serve(Workspace& ws) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_) {
    if (Task* task = take_largest()) run(*task, ws, lock);
    else pause(takers_, lock, [&] { return closed_ || n_pending_ > 0; });
  }
}

void Tasks::close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  takers_.wakes.notify_all();
}

Fork::Fork(Tasks* tasks, Workspace& ws, off size, std::function<void(Workspace&)> body)
    : tasks_(tasks), ws_(ws), task_{size, std::move(body)} {
  if (tasks_) tasks_->offer(task_);
}

Fork::~Fork() {
  if (!joined_ && tasks_ && !tasks_->withdraw(task_)) tasks_->join(task_, ws_, false);
}

void Fork::join(bool help) {
  joined_ = true;
  if (!tasks_) return task_.body(ws_);
  tasks_->join(task_, ws_, help);
  tasks_->rethrow();
}

void for_each(Workspace& ws, int count, bool parallel, const std::function<void(int, Workspace&)>& body) {
  if (!parallel || !ws.tasks) {
    for (int i = 0; i < count; i++) go_on(), body(i, ws);
    return;
  }
  std::deque<Fork> forks;
  for (int i = 1; i < count; i++)
    forks.emplace_back(ws.tasks, ws, 1, [&body, i](Workspace& other) {
      go_on();
      body(i, other);
    });
  body(0, ws);
  for (Fork& fork : forks) fork.join(false);
}

}  // namespace gs::nd
