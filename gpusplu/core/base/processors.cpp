#include "base/processors.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <thread>

namespace gs {
namespace {

// Number of processors in "QUOTA PERIOD"; 0 for "max PERIOD" and anything else.
double quota_in(const std::string& text) {
  long long quota = 0, period = 0;
  const char* end = text.data() + text.size();
  const auto [space, error] = std::from_chars(text.data(), end, quota);
  if (error != std::errc() || space == end) return 0;
  std::from_chars(space + 1, end, period);
  return quota > 0 && period > 0 ? double(quota) / double(period) : 0;
}

}  // namespace

// Uses C's library: C++ streams crashed in a process that had loaded another version of the C++ library before.
std::string beginning_of(const std::string& path) {
  char text[4096];
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (!file) return {};
  const std::size_t size = std::fread(text, 1, sizeof text, file);
  std::fclose(file);
  return {text, size};
}

int quota_of(const std::string& membership, const std::string& root) {
  const std::size_t found = membership.find("0::/");
  if (found == std::string::npos) return 0;
  std::string group = membership.substr(found + 3, membership.find('\n', found) - found - 3);
  double least = 0;
  for (;;) {  // from the group upwards: each ancestor may have a quota too
    const double quota = quota_in(beginning_of(root + (group == "/" ? "" : group) + "/cpu.max"));
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
    if (group.size() <= 1) break;
    group.erase(std::max<std::size_t>(group.rfind('/'), 1));
  }
  return least > 0 ? std::max(1, (int)std::min(least + 0.999, 1e6)) : 0;
}

bool processors_are_taken() {
  int running = 0;  // proc_loadavg(5): the fourth field is "threads that run or wait for a processor/all threads"
  std::sscanf(beginning_of("/proc/loadavg").c_str(), "%*f %*f %*f %d/", &running);
  return running > (int)std::thread::hardware_concurrency();
}

int usable_processors() {
  int count = (int)std::thread::hardware_concurrency();
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
  const int quota = quota_of(beginning_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return std::max(1, quota > 0 ? std::min(count, quota) : count);
}

}  // namespace gs
