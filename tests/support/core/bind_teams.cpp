// Test access to teams of threads and what they know of their company.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "base/blas_threads.hpp"
#include "base/processors.hpp"
#include "base/threads.hpp"
#include "testing.hpp"

namespace gs {
namespace {

void pass(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// What a driver says of a stream that is busy until `*idle_at` of the steady clock [s].
int stream_is_busy(void* idle_at) {
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return now.count() < *static_cast<const double*>(idle_at) ? 600 : 0;
}

// Whether a job of so many seconds is crowded of which its members tell to have worked some.
bool job_is_crowded(double seconds, double worked, bool impatient) {
  Job job;
  if (impatient) job.wait_was_long();
  pass(seconds);
  job.tell(std::int64_t(1e9 * worked));
  return job.crowded();
}

// What each member sees after each of some rounds, in which rank 1 sleeps so long while the others wait for it.
std::vector<std::vector<bool>> crowded_rounds(int size, int rounds, double seconds) {
  std::vector<std::vector<char>> seen(size);
  run_team(size, [&](const Team& team) {
    for (int round = 0; round < rounds; round++) {
      if (team.rank == 1) pass(seconds);
      team.sync();
      seen[team.rank].push_back(team.crowded());
    }
  });
  std::vector<std::vector<bool>> out;
  for (const auto& of_one : seen) out.emplace_back(of_one.begin(), of_one.end());
  return out;
}

// Members of a job of a kind: before any, after one that lost so many seconds, and after 20 times as long and more.
std::vector<int> members_after(double lost) {
  Crowding crowding;
  std::vector<int> members{crowding.members(4)};
  crowding.found(std::int64_t(1e9 * lost));
  members.push_back(crowding.members(4));
  pass(21 * lost);
  members.push_back(crowding.members(4));
  return members;
}

// Of a callable, with workers of OpenBLAS put aside where there are so many processors: the processors that are left, 0
// where they were let alone, and what it returns.
nb::tuple beside_blas(nb::callable call, int least) {
  const int before = std::exchange(least_processors_beside_blas, least);
  find_blas_threads(0);
  BlasAside aside;
  aside.begin();
  const int left = aside.left();
  nb::object found = call();
  aside.end();
  least_processors_beside_blas = before;
  return nb::make_tuple(left, found);
}

// Whether a kind of job is one that workers are put aside for, now and after some product.
std::vector<bool> kind_beside_blas(nb::callable product) {
  Crowding crowding;
  std::vector<bool> found{crowding.is_beside_blas()};
  crowding.found_beside_blas();
  for (int k = 0; k < 2; k++) found.push_back(crowding.is_beside_blas());
  product();
  found.push_back(crowding.is_beside_blas());
  return found;
}

}  // namespace

void bind_teams(nb::module_& m) {
  m.attr("stream_is_busy") = reinterpret_cast<std::uintptr_t>(&stream_is_busy);  // for `poll` of the core
  m.def("job_is_crowded", &job_is_crowded, "seconds"_a, "worked"_a, "impatient"_a);
  m.def("crowded_rounds", &crowded_rounds, "size"_a, "rounds"_a, "seconds"_a);
  m.def("quota_of", &quota_of, "membership"_a, "root"_a);
  m.def("beside_blas", &beside_blas, "call"_a, "least"_a);
  m.def("kind_beside_blas", &kind_beside_blas, "product"_a);
  m.def("members_after", &members_after, "lost"_a);
}

}  // namespace gs
