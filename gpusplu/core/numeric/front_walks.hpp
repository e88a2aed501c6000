// Runs the tasks of a FrontPlan with several threads, from the leaves up or from the roots down.
//
// Up: threads take start tasks in postorder; the thread that finishes the last child of a task continues with that
// task. Large fronts are factored in loops that idle threads share (base/loops.hpp). Down: the thread that finishes a
// task queues its children.
//
// Which thread runs which task depends on timing; results do not.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/loops.hpp"
#include "numeric/block_limit.hpp"
#include "numeric/front_plan.hpp"

namespace gs {

class UpwardWalk {
 public:
  // `limit`: of the memory of contribution blocks, if tasks make them.
  explicit UpwardWalk(const FrontPlan& plan, const BlockLimit* limit = nullptr)
      : plan_(plan), waiting_(plan.tasks.size()) {
    if (limit && limit->is_needed()) limited_.emplace(plan, *limit);
    idx n_roots = 0;
    for (std::size_t t = 0; t < plan.tasks.size(); t++) {
      waiting_[t].store(plan.tasks[t].n_dependencies, std::memory_order_relaxed);
      n_roots += plan.tasks[t].parent < 0;
    }
    roots_left_.store(n_roots, std::memory_order_relaxed);
  }

  // Runs tasks on this thread, task(t) for each. Other threads may still be running tasks when it returns.
  template <class Task> void run(Task&& task) {
    while (run_next(task, [] {})) {
    }
  }

  // Runs all tasks on the members of a team, task(loops, t) for each; returns when all are done.
  template <class Task> void run(const Team& team, SharedLoops& shared, Task&& task) {
    if (plan_.tasks.empty()) return;
    shared.run(team, [&](Loops& loops) {
      const bool found = run_next([&](idx t) { task(loops, t); }, [&] { shared.changed(); });
      if (found && is_done()) shared.end();
      return found;
    });
  }

  bool is_done() const { return roots_left_.load(std::memory_order_acquire) == 0; }
  void wait(const Team& team) const {
    team.wait([&] { return is_done(); });
  }

 private:
  // Runs the next start task and every ancestor that it enables by finishing its last child; false if none is left, or
  // if none may begin at the moment: freed() is called when one may.
  template <class Task, class Freed> bool run_next(Task&& task, Freed&& freed) {
    if (limited_) return run_within_limit(task, freed);
    const idx n = (idx)plan_.start_tasks.size();
    if (next_.load(std::memory_order_relaxed) >= n) return false;
    const idx ticket = next_.fetch_add(1, std::memory_order_relaxed);
    if (ticket >= n) return false;
    for (idx t = plan_.start_tasks[ticket]; t >= 0; t = arrive(t)) task(t);
    return true;
  }

  template <class Task, class Freed> bool run_within_limit(Task&& task, Freed&& freed) {
    std::unique_lock lock(mutex_);
    idx t = limited_->next();
    if (t < 0) {
      others_wait_ = limited_->are_left();
      return false;
    }
    while (t >= 0) {
      lock.unlock();
      task(t);
      lock.lock();
      const idx parent = arrive(t);
      limited_->end(t, parent);
      t = parent >= 0 ? limited_->next() : -1;
      if (std::exchange(others_wait_, false)) freed();
    }
    return true;
  }

  // Returns the parent if this was its last unfinished child, else -1.
  idx arrive(idx t) {
    const idx parent = plan_.tasks[t].parent;
    if (parent < 0) roots_left_.fetch_sub(1, std::memory_order_acq_rel);
    return parent >= 0 && waiting_[parent].fetch_sub(1, std::memory_order_acq_rel) == 1 ? parent : -1;
  }

  const FrontPlan& plan_;
  std::vector<std::atomic<idx>> waiting_;
  std::atomic<idx> next_{0}, roots_left_{0};
  std::mutex mutex_;                          // guards what follows
  std::optional<BlockLimit::Tasks> limited_;  // set if memory is limited
  bool others_wait_ = false;                  // for memory
};

class DownwardWalk {
 public:
  explicit DownwardWalk(const FrontPlan& plan) : plan_(plan), queue_(plan.tasks.size()) {
    for (auto& slot : queue_) slot.store(-1, std::memory_order_relaxed);
    for (idx t = (idx)plan.tasks.size(); t-- > 0;)
      if (plan.tasks[t].parent < 0) push(t);
  }

  // Threads take tickets; another thread may still have to queue the task of a ticket.
  template <class Task> void run(const Team& team, Task&& task) {
    while (!team.may_leave()) {
      const idx number = next_.fetch_add(1, std::memory_order_relaxed);
      if (number >= (idx)queue_.size()) return;
      run_ticket(number, team, task);
    }
  }

  // The same with tasks that open loops, task(loops, t) for each; returns when all are done.
  template <class Task> void run(const Team& team, SharedLoops& shared, Task&& task) {
    if (queue_.empty()) return;
    shared.run(team, [&](Loops& loops) {
      idx number = next_.load(std::memory_order_relaxed);
      do {
        if (number >= queued_.load(std::memory_order_acquire)) return false;
      } while (!next_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
      run_ticket(number, team, [&](idx t) { task(loops, t); });
      if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == (idx)queue_.size()) shared.end();
      else shared.changed();
      return true;
    });
  }

 private:
  template <class Task> void run_ticket(idx number, const Team& team, Task&& task) {
    idx t;
    const auto is_queued = [&] { return (t = queue_[number].load(std::memory_order_acquire)) >= 0; };
    if (!is_queued()) team.wait(is_queued);
    task(t);
    for (idx c = plan_.task_child_ptr[t + 1]; c-- > plan_.task_child_ptr[t];) push(plan_.task_child[c]);
  }
  void push(idx t) { queue_[queued_.fetch_add(1, std::memory_order_relaxed)].store(t, std::memory_order_release); }

  const FrontPlan& plan_;
  std::vector<std::atomic<idx>> queue_;
  std::atomic<idx> next_{0}, queued_{0}, done_{0};
};

}  // namespace gs
