// Works off the tasks of a FrontPlan with several threads, from the leaves up or from the roots down.
//
// Up: threads take start tasks in postorder; whoever finishes the last child of a task goes on with that task. A front
// that is worth the whole team waits in a queue until all members have finished what they are at, which happens before
// any of them takes a new start task. Down: whoever finishes a task queues its children.
//
// Which thread runs what depends on timing; results must not.
#pragma once
#include <atomic>
#include <vector>

#include "base/threads.hpp"
#include "numeric/front_plan.hpp"

namespace gs {

class UpwardWalk {
 public:
  // use_teams: leave the fronts that are marked for it to the whole team.
  UpwardWalk(const FrontPlan& plan, bool use_teams) : plan_(plan), waiting_(plan.tasks.size()) {
    idx n_roots = 0;
    for (std::size_t t = 0; t < plan.tasks.size(); t++) {
      waiting_[t].store(plan.tasks[t].n_dependencies, std::memory_order_relaxed);
      n_roots += plan.tasks[t].parent < 0;
      if (use_teams && plan.tasks[t].whole_team) team_queue_.push_back(-1);
    }
    roots_left_.store(n_roots, std::memory_order_relaxed);
  }

  bool needs_team() const { return !team_queue_.empty(); }

  // task(t): one task by this thread. For helpers; they may still be at it when one of them returns.
  template <class Task> void run(Task&& task) {
    for (idx ticket; (ticket = next_.fetch_add(1, std::memory_order_relaxed)) < (idx)plan_.start_tasks.size();)
      climb(plan_.start_tasks[ticket], task);
  }

  // Returns when all tasks are done.
  void wait(const Team& team) const {
    team.wait([&] { return roots_left_.load(std::memory_order_acquire) == 0; });
  }

  // team_task(team, t): one front by all; by rank 0 alone once the team is in its own way.
  template <class Task, class TeamTask> void run(Team team, Task&& task, TeamTask&& team_task) {
    for (idx done = 0;;) {
      while (queued_.load(std::memory_order_relaxed) == done) {
        const idx ticket = next_.fetch_add(1, std::memory_order_relaxed);
        if (ticket >= (idx)plan_.start_tasks.size()) break;
        climb(plan_.start_tasks[ticket], task);
      }
      team.sync();  // nobody works: the queue stands still
      const idx queued = queued_.load(std::memory_order_relaxed);
      team.sync();
      if (queued == done) return;
      if (team.crowded()) {
        if (team.rank > 0) return;
        team = Team{};
      }
      for (; done < queued; done++) {
        const idx t = team_queue_[done];
        team_task(team, t);
        if (team.rank == 0) climb(arrive(t), [](idx) {});
      }
      team.sync();
    }
  }

 private:
  // Runs task t and every ancestor whose last child this was.
  template <class Task> void climb(idx t, Task&& task) {
    while (t >= 0) {
      if (needs_team() && plan_.tasks[t].whole_team) {
        team_queue_[queued_.fetch_add(1, std::memory_order_relaxed)] = t;
        return;
      }
      task(t);
      t = arrive(t);
    }
  }
  // The parent, if it waited for nothing else.
  idx arrive(idx t) {
    const idx parent = plan_.tasks[t].parent;
    if (parent < 0) roots_left_.fetch_sub(1, std::memory_order_acq_rel);
    return parent >= 0 && waiting_[parent].fetch_sub(1, std::memory_order_acq_rel) == 1 ? parent : -1;
  }

  const FrontPlan& plan_;
  std::vector<std::atomic<idx>> waiting_;
  std::vector<idx> team_queue_;
  std::atomic<idx> next_{0}, queued_{0}, roots_left_{0};
};

class DownwardWalk {
 public:
  // after_teams: the fronts that are marked for the whole team are done; their ancestors are too.
  explicit DownwardWalk(const FrontPlan& plan, bool after_teams = false) : plan_(plan) {
    const auto is_done = [&](idx t) { return t < 0 || (after_teams && plan.tasks[t].whole_team); };
    idx n_left = 0;
    for (idx t = 0; t < (idx)plan.tasks.size(); t++) n_left += !is_done(t);
    queue_ = std::vector<std::atomic<idx>>(n_left);
    for (auto& slot : queue_) slot.store(-1, std::memory_order_relaxed);
    for (idx t = (idx)plan.tasks.size(); t-- > 0;)
      if (!is_done(t) && is_done(plan.tasks[t].parent)) push(t);
  }

  // Threads take numbers; the task that belongs to a number may still have to be queued by another thread.
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
