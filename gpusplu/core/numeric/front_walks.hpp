// Runs the tasks of a FrontPlan with several threads, from the leaves up or from the roots down.
//
// Up: threads take start tasks in postorder; the thread that finishes the last child of a task continues with that
// task. Fronts that are marked for the whole team wait in a queue for the leader, which factors them in loops that
// helpers share (base/loops.hpp); helpers continue with start tasks while no loop is open. Down: the thread that
// finishes a task queues its children.
//
// Which thread runs which task depends on timing; results do not.
#pragma once
#include <atomic>
#include <vector>

#include "base/loops.hpp"
#include "numeric/front_plan.hpp"

namespace gs {

class UpwardWalk {
 public:
  // use_teams: queue the fronts that are marked for the whole team.
  UpwardWalk(const FrontPlan& plan, bool use_teams) : plan_(plan), waiting_(plan.tasks.size()) {
    idx n_roots = 0, n_team = 0;
    for (std::size_t t = 0; t < plan.tasks.size(); t++) {
      waiting_[t].store(plan.tasks[t].n_dependencies, std::memory_order_relaxed);
      n_roots += plan.tasks[t].parent < 0;
      n_team += use_teams && plan.tasks[t].whole_team;
    }
    team_queue_ = std::vector<std::atomic<idx>>(n_team);
    for (auto& slot : team_queue_) slot.store(-1, std::memory_order_relaxed);
    roots_left_.store(n_roots, std::memory_order_relaxed);
  }

  bool needs_team() const { return !team_queue_.empty(); }

  // Runs tasks on this thread, task(t) for each. Other threads may still be running tasks when it returns.
  template <class Task> void run(Task&& task) {
    while (run_next(task)) {
    }
  }

  // Runs the next start task and the tasks that it enables; false if none is left.
  template <class Task> bool run_next(Task&& task) {
    const idx n = (idx)plan_.start_tasks.size();
    if (next_.load(std::memory_order_relaxed) >= n) return false;
    const idx ticket = next_.fetch_add(1, std::memory_order_relaxed);
    if (ticket >= n) return false;
    climb(plan_.start_tasks[ticket], task);
    return true;
  }

  // Returns when all tasks are done.
  void wait(const Team& team) const {
    team.wait([&] { return roots_left_.load(std::memory_order_acquire) == 0; });
  }

  // Runs all tasks on the members of a team. team_task(loops, t): a front that is marked for the whole team, on the
  // leader.
  template <class Task, class TeamTask> void run(const Team& team, Loops& loops, Task&& task, TeamTask&& team_task) {
    if (team.rank > 0) return loops.help(team, [&] { return run_next(task); });
    loops.begin(team);
    for (idx done = 0; roots_left_.load(std::memory_order_acquire) > 0;) {
      if (const idx t = queued(done); t >= 0) {
        team_task(loops, t);
        climb(arrive(t), task);
        done++;
      } else if (!run_next(task)) {
        team.wait([&] { return queued(done) >= 0 || roots_left_.load(std::memory_order_acquire) == 0; });
      }
    }
    loops.end();
  }

 private:
  // Runs task t and every ancestor that it enables by finishing its last child.
  template <class Task> void climb(idx t, Task&& task) {
    while (t >= 0) {
      if (needs_team() && plan_.tasks[t].whole_team) {
        team_queue_[queued_.fetch_add(1, std::memory_order_relaxed)].store(t, std::memory_order_release);
        return;
      }
      task(t);
      t = arrive(t);
    }
  }
  // Returns the parent if this was its last unfinished child, else -1.
  idx arrive(idx t) {
    const idx parent = plan_.tasks[t].parent;
    if (parent < 0) roots_left_.fetch_sub(1, std::memory_order_acq_rel);
    return parent >= 0 && waiting_[parent].fetch_sub(1, std::memory_order_acq_rel) == 1 ? parent : -1;
  }

  // Entry `place` of the queue of fronts for the team; -1 if it is not queued yet.
  idx queued(idx place) const {
    return place < (idx)team_queue_.size() ? team_queue_[place].load(std::memory_order_acquire) : -1;
  }

  const FrontPlan& plan_;
  std::vector<std::atomic<idx>> waiting_;
  std::vector<std::atomic<idx>> team_queue_;
  std::atomic<idx> next_{0}, queued_{0}, roots_left_{0};
};

class DownwardWalk {
 public:
  // after_teams: the fronts that are marked for the whole team are done, and so are their ancestors.
  explicit DownwardWalk(const FrontPlan& plan, bool after_teams = false) : plan_(plan) {
    const auto is_done = [&](idx t) { return t < 0 || (after_teams && plan.tasks[t].whole_team); };
    idx n_left = 0;
    for (idx t = 0; t < (idx)plan.tasks.size(); t++) n_left += !is_done(t);
    queue_ = std::vector<std::atomic<idx>>(n_left);
    for (auto& slot : queue_) slot.store(-1, std::memory_order_relaxed);
    for (idx t = (idx)plan.tasks.size(); t-- > 0;)
      if (!is_done(t) && is_done(plan.tasks[t].parent)) push(t);
  }

  // Threads take tickets; another thread may still have to queue the task of a ticket.
  template <class Task> void run(const Team& team, Task&& task) {
    for (;;) {
      const idx number = next_.fetch_add(1, std::memory_order_relaxed);
      if (number >= (idx)queue_.size()) return;
      idx t;
      const auto is_queued = [&] { return (t = queue_[number].load(std::memory_order_acquire)) >= 0; };
      if (!is_queued()) team.wait(is_queued);
      task(t);
      for (idx c = plan_.task_child_ptr[t + 1]; c-- > plan_.task_child_ptr[t];) push(plan_.task_child[c]);
    }
  }

 private:
  void push(idx t) { queue_[queued_.fetch_add(1, std::memory_order_relaxed)].store(t, std::memory_order_release); }

  const FrontPlan& plan_;
  std::vector<std::atomic<idx>> queue_;
  std::atomic<idx> next_{0}, queued_{0};
};

}  // namespace gs
