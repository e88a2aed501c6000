// Test access to teams of threads and what they know of their company.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "base/blas_threads.hpp"
#include "base/job_kind.hpp"
#include "base/loops.hpp"
#include "base/processors.hpp"
#include "base/stopwatch.hpp"
#include "testing.hpp"

namespace gs {
namespace {

void pass(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// What a driver says of a stream that is busy until `*idle_at` of the steady clock [s].
int stream_is_busy(void* idle_at) {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return now.count() < *static_cast<const double*>(idle_at) ? 600 : 0;
}

// Each of `leaders` members of up to `size` threads runs a loop of each count. Members without a loop of their own are
// away for so many seconds between loops. How often each iteration was run, and how long the last leader took.
nb::tuple run_loops(int size, const std::vector<int>& counts, double away, int leaders) {
  std::vector<std::vector<int>> runs;
  for (int k = 0; k < leaders; k++)
    for (const int count : counts) runs.emplace_back(count, 0);
  double seconds = 0;
  std::atomic<int> next{0}, left{leaders};
  SharedLoops shared(size);
  run_helpers(size, [&](const Team& team) {
    shared.run(team, [&](Loops& loops) {
      if (away > 0 && team.rank > 0) pass(away);
      const int leader = next.fetch_add(1);
      if (leader >= leaders) return false;
      const Stopwatch watch;
      for (std::size_t k = 0; k < counts.size(); k++) {
        auto& of_loop = runs[leader * counts.size() + k];
        loops.run(counts[k], [&](int i, int) { std::atomic_ref(of_loop[i]).fetch_add(1); });
      }
      if (left.fetch_sub(1) == 1) seconds = watch.seconds(), shared.end();
      return true;
    });
  });
  return nb::make_tuple(runs, seconds);
}

// A job of so many loops that takes one thread `work` seconds by estimate, though a helper takes 3 ms for each of its
// iterations: how many of them helpers ran.
int slow_iterations(int size, int loops, double work) {
  std::atomic<int> found{0};
  JobKind kind;
  SharedLoops shared(size);
  const auto body = [&](const Team& team) {
    shared.run(team, [&](Loops& own) {
      if (team.rank > 0) return false;
      for (int k = 0; k < loops; k++)
        own.run(8, [&](int, int rank) {
          pass(rank > 0 ? 3e-3 : 1e-4);
          found += rank > 0;
        });
      shared.end();
      return true;
    });
  };
  run_helpers(size, body, &kind, work);
  return found;
}

// For each of some jobs, the thread of each rank; a member waits until all have come, or a second.
std::vector<std::vector<int>> threads_of_ranks(int size, int jobs) {
  std::vector<std::vector<int>> found;
  for (int k = 0; k < jobs; k++) {
    std::vector<int> threads(size);
    std::atomic<int> come{0};
    run_helpers(size, [&](const Team& team) {
      threads[team.rank] = (int)gettid();
      come++;
      for (const Stopwatch watch; come < team.size && watch.seconds() < 1;) pass(1e-5);
    });
    found.push_back(threads);
  }
  return found;
}

// Of a callable, with workers of OpenBLAS put aside where there are so many processors: the processors that are left, 0
// where they were let alone, and what it returns.
nb::tuple beside_blas(nb::callable call, int least) {
  const int before = std::exchange(least_processors_with_blas, least);
  find_blas_threads(0);
  PinnedBlas aside;
  aside.begin();
  const int left = aside.left();
  nb::object found = call();
  aside.end();
  least_processors_with_blas = before;
  return nb::make_tuple(left, found);
}

// Whether a kind of job is one that workers are put aside for, now and after some product.
std::vector<bool> kind_beside_blas(nb::callable product) {
  BlasInterference blas;
  std::vector<bool> found{blas.interferes()};
  blas.found_interference();
  for (int k = 0; k < 2; k++) found.push_back(blas.interferes());
  product();
  found.push_back(blas.interferes());
  return found;
}

auto answer(bool taken) {
  return taken ? +[] { return true; } : +[] { return false; };
}

}  // namespace

void bind_teams(nb::module_& m) {
  m.attr("stream_is_busy") = reinterpret_cast<std::uintptr_t>(&stream_is_busy);  // for `poll` of the core
  nb::class_<ThreadChoice>(m, "ThreadChoice")
      .def(nb::init<>())
      .def(
          "choose",
          [](ThreadChoice& choice, int want, std::int64_t now, bool taken) {
            return choice.choose(want, now, answer(taken));
          },
          "want"_a, "now"_a, "taken"_a)
      .def(
          "record",
          [](ThreadChoice& choice, double work, std::int64_t elapsed, std::int64_t now, bool taken) {
            choice.record(work, elapsed, now, answer(taken));
          },
          "work"_a, "elapsed"_a, "now"_a, "taken"_a);
  m.def("run_loops", &run_loops, "size"_a, "counts"_a, "away"_a = 0.0, "leaders"_a = 1);
  m.def("slow_iterations", &slow_iterations, "size"_a, "loops"_a, "work"_a);
  m.def("threads_of_ranks", &threads_of_ranks, "size"_a, "jobs"_a);
  m.def("quota_of", &quota_of, "membership"_a, "root"_a);
  m.def("beside_blas", &beside_blas, "call"_a, "least"_a);
  m.def("kind_beside_blas", &kind_beside_blas, "product"_a);
}

}  // namespace gs
