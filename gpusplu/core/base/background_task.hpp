// Runs two tasks at once if the system grants a thread.
#pragma once
#include <exception>
#include <system_error>
#include <thread>

#include "base/threads.hpp"

namespace gs {

// Runs f() on a new thread, or in join() if no thread can be created.
template <class F> class BackgroundTask {
 public:
  explicit BackgroundTask(F f) : f_(std::move(f)) {
    try {
      thread_ = std::thread([this, operation = detail::progress_point.operation] {
        const Helping helping(operation);
        if (can_throw()) run();
        ended_.store(true, std::memory_order_release);
      });
    } catch (const std::system_error&) {
    }
  }
  ~BackgroundTask() {
    if (thread_.joinable()) thread_.join();
  }
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  void join() {  // rethrows what f threw
    const std::int64_t from = wall_clock();
    while (thread_.joinable() && detail::progress_point.caller && !ended_.load(std::memory_order_acquire))
      nap(wall_clock() - from);
    if (thread_.joinable()) thread_.join();
    if (!done_) run();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run() {
    try {
      f_();
    } catch (...) {
      error_ = std::current_exception();
    }
    done_ = true;
  }

  F f_;
  bool done_ = false;
  std::atomic<bool> ended_{false};
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace gs
