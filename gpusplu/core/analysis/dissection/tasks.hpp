// Fork and join on the threads of a team.
#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "base/types.hpp"

namespace gs::nd {

struct Workspace;

// Tasks that idle threads may take, the largest first. The thread that offers a task waits for it before it returns, so
// tasks may use the stack and the arenas of that thread. Tasks of half a millisecond follow each other closely, so
// waiting threads poll for a moment before they sleep.
//
// A task that throws leaves its workspace in an intermediate state, in the middle of the work of the thread that ran it
// while waiting. So the first error ends everything: no further task begins, and every join rethrows the error.
class Tasks {
 public:
  enum State { pending, taken, done };
  struct Task {
    off size;
    std::function<void(Workspace&)> body;
    std::atomic<State> state = pending;
  };
  void offer(Task& task);
  // Runs the task unless another thread has taken it; else waits for its end and, with `help`, runs other tasks
  // meanwhile.
  void join(Task& task, Workspace& ws, bool help);
  bool withdraw(Task& task);                                                // false: a thread has taken it
  void serve(Workspace& ws);                                                // runs tasks until close()
  void try_to(const std::function<void(Workspace&)>& body, Workspace& ws);  // keeps an error for rethrow
  void rethrow();                                                           // throws the first error
  void close();

 private:
  // Where threads sleep: those that would take a task, and those that only wait for the end of one.
  struct Bed {
    std::condition_variable wakes;
    int sleepers = 0;
  };
  Task* take_largest();
  void run(Task& task, Workspace& ws, std::unique_lock<std::mutex>& lock);
  template <class Ready> void pause(Bed& bed, std::unique_lock<std::mutex>& lock, const Ready& ready);

  std::mutex mutex_;
  Bed takers_, waiters_;
  std::vector<Task*> pending_;
  std::atomic<int> n_pending_ = 0;  // read without the lock
  std::atomic<bool> closed_ = false;
  std::exception_ptr error_;  // the first
};

// body(ws) on some thread, at the latest when the fork is joined or goes out of scope.
class Fork {
 public:
  Fork(Tasks* tasks, Workspace& ws, off size, std::function<void(Workspace&)> body);  // no tasks: runs when joined
  ~Fork();
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;
  void join(bool help);  // rethrows the error of this task or another

 private:
  Tasks* tasks_;
  Workspace& ws_;
  Tasks::Task task_;
  bool joined_ = false;
};

// body(i, ws) for i = 0 .. count-1, on idle threads too where `parallel`.
void for_each(Workspace& ws, int count, bool parallel, const std::function<void(int, Workspace&)>& body);

}  // namespace gs::nd
