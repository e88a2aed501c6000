// Bounds the memory of contribution blocks, so that a factorization needs at most 1.5 times the memory of its factor.
//
// On one thread, in postorder, few blocks wait for their parents. Several threads work on several subtrees at the same
// time, and the more of them have begun, the more blocks wait. So a task begins only if the blocks stay below the limit
// while it runs, and also afterwards if the unfinished tasks were run one by one in postorder. Then all tasks can be
// run: if nothing runs, the first unfinished task fits. (E. Agullo, P. R. Amestoy, A. Buttari, A. Guermouche, J.-Y.
// L'Excellent and F.-H. Rouet, "Robust memory-aware mappings for parallel multifrontal factorizations", SIAM J. Sci.
// Comput. 38 (2016), bound the memory of processes in this way.)
//
// Results do not depend on the order of tasks.
#pragma once
#include <cstddef>
#include <vector>

#include "numeric/front_plan.hpp"

namespace gs {

class BlockLimit {
 public:
  BlockLimit(const Symbolic& symbolic, const FrontPlan& plan, off scalar_bytes);

  off bytes() const { return most_; }
  bool is_needed() const { return is_needed_; }  // else the blocks of any tasks stay below it

  // The tasks that may run, of one factorization. Callers serialize calls.
  class Tasks {
   public:
    Tasks(const FrontPlan& plan, const BlockLimit& limit);
    // Begins a task with finished children: the first in postorder that may begin, -1 if there is none. Start tasks
    // begin in order.
    idx next();
    // Ends a task; `parent`: if this was its last child, else -1.
    void end(idx t, idx parent);
    bool are_left() const { return !ready_.empty() || next_start_ < plan_.start_tasks.size(); }

   private:
    bool may_begin(idx t) const;

    const FrontPlan& plan_;
    const BlockLimit& limit_;
    std::size_t next_start_ = 0;
    std::vector<idx> ready_;  // tasks with finished children, ascending; start tasks apart
    std::vector<char> is_done_;
    idx first_ = 0, last_ = 0;       // the first unfinished task; the last that has begun
    off waiting_ = 0, running_ = 0;  // bytes of blocks that wait for their parents; that running tasks add to these
  };

 private:
  struct Task {
    off need, change;  // bytes of blocks beyond those before the task: at most while it runs, and afterwards
  };
  std::vector<Task> tasks_;
  off most_ = 0;
  bool is_needed_ = false;
};

}  // namespace gs
