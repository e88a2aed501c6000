#include "base/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

namespace gs {

int quota_of(const std::string& membership, const std::string& root) {
  const std::size_t found = membership.find("0::/");
  if (found == std::string::npos) return 0;
  std::string group = membership.substr(found + 3, membership.find('\n', found) - found - 3);
  double least = 0;
  for (;;) {  // from the group up: each of its ancestors may have a quota too
    std::ifstream file(root + (group == "/" ? "" : group) + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period && quota > 0 && period > 0)  // the word "max" is no number
      least = least > 0 ? std::min(least, quota / period) : quota / period;
    if (group.size() <= 1) break;
    group.erase(std::max<std::size_t>(group.rfind('/'), 1));
  }
  return least > 0 ? std::max(1, (int)std::min(least + 0.999, 1e6)) : 0;
}

int usable_processors() {
  cpu_set_t set;
  int count = (int)std::thread::hardware_concurrency();
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
  std::ifstream file("/proc/self/cgroup");
  std::stringstream membership;
  membership << file.rdbuf();
  const int quota = quota_of(membership.str(), "/sys/fs/cgroup");
  return std::max(1, quota > 0 ? std::min(count, quota) : count);
}

}  // namespace gs
