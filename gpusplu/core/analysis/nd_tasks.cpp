#include "analysis/nd_tasks.hpp"

#include <algorithm>
#include <deque>

#include "analysis/nd_graph.hpp"

namespace gs::nd {

void Tasks::offer(Task& task) {
  std::lock_guard<std::mutex> lock(mutex_);
  offered_.push_back(&task);
  changed_.notify_all();
}

Tasks::Task* Tasks::take_largest() {
  if (offered_.empty()) return nullptr;
  auto largest = std::max_element(offered_.begin(), offered_.end(), [](Task* a, Task* b) { return a->size < b->size; });
  Task* task = *largest;
  offered_.erase(largest);
  task->state = Task::taken;
  return task;
}

void Tasks::run(Task& task, Workspace& ws, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  try {
    task.body(ws);
  } catch (...) {
    task.error = std::current_exception();
  }
  lock.lock();
  task.state = Task::done;
  changed_.notify_all();
}

bool Tasks::withdraw(Task& task) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (task.state != Task::offered) return false;
  std::erase(offered_, &task);
  task.state = Task::done;
  return true;
}

void Tasks::join(Task& task, Workspace& ws, bool help) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (task.state == Task::offered) {
    std::erase(offered_, &task);
    task.state = Task::taken;
    run(task, ws, lock);
  }
  while (task.state != Task::done) {
    Task* other = help ? take_largest() : nullptr;
    if (other) run(*other, ws, lock);
    else changed_.wait(lock);
  }
}

void Tasks::serve(Workspace& ws) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closed_) {
    if (Task* task = take_largest()) run(*task, ws, lock);
    else changed_.wait(lock);
  }
}

void Tasks::close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
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
  if (task_.error) std::rethrow_exception(task_.error);
}

void for_each(Workspace& ws, int count, bool parallel, const std::function<void(int, Workspace&)>& body) {
  if (!parallel || !ws.tasks) {
    for (int i = 0; i < count; i++) body(i, ws);
    return;
  }
  std::deque<Fork> forks;
  for (int i = 1; i < count; i++) forks.emplace_back(ws.tasks, ws, 1, [&body, i](Workspace& other) { body(i, other); });
  body(0, ws);
  for (Fork& fork : forks) fork.join(false);
}

}  // namespace gs::nd
