// Fork and join on the threads of a team.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "base/types.hpp"

namespace gs::nd {

struct Workspace;

// Tasks that idle threads may take, the largest first. Whoever offered a task waits for it before it returns, so tasks
// may use the stack and the arenas of the thread that offered them.
class Tasks {
 public:
  struct Task {
    off size;
    std::function<void(Workspace&)> body;
    enum { offered, taken, done } state = offered;
    std::exception_ptr error = nullptr;
  };
  void offer(Task& task);
  // Runs the task unless somebody has taken it; then waits for its end and, with `help`, runs other tasks meanwhile.
  void join(Task& task, Workspace& ws, bool help);
  bool withdraw(Task& task);  // false: somebody has taken it
  void serve(Workspace& ws);  // runs tasks until close()
  void close();

 private:
  Task* take_largest();
  void run(Task& task, Workspace& ws, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Task*> offered_;
  bool closed_ = false;
};

// body(ws) on some thread, at the latest when the fork is joined or goes out of scope.
class Fork {
 public:
  Fork(Tasks* tasks, Workspace& ws, off size, std::function<void(Workspace&)> body);  // no tasks: runs when joined
  ~Fork();
  Fork(const Fork&) = delete;
  Fork& operator=(const Fork&) = delete;
  void join(bool help);  // throws what the body threw

 private:
  Tasks* tasks_;
  Workspace& ws_;
  Tasks::Task task_;
  bool joined_ = false;
};

// body(i, ws) for i = 0 .. count-1, on idle threads too where `parallel`.
void for_each(Workspace& ws, int count, bool parallel, const std::function<void(int, Workspace&)>& body);

}  // namespace gs::nd
