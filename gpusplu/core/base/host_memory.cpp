#include "base/host_memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "base/processors.hpp"

namespace gs {
namespace {

constexpr off kUnknown = std::numeric_limits<off>::max();

// The number after `name` in a text, times `unit`; `otherwise` if there is none.
off number_after(const std::string& text, const char* name, off unit, off otherwise) {
  const std::size_t found = text.find(name);
  long long number;
  const bool read = found != std::string::npos &&
                    std::sscanf(text.c_str() + found + std::char_traits<char>::length(name), "%lld", &number) == 1;
  return read ? number * unit : otherwise;
}

off free_of_groups() {
  const std::string membership = beginning_of("/proc/self/cgroup");
  const std::size_t found = membership.find("0::/");
  if (found == std::string::npos) return kUnknown;
  std::string group = membership.substr(found + 3, membership.find('\n', found) - found - 3);
  for (off least = kUnknown;; group.erase(std::max<std::size_t>(group.rfind('/'), 1))) {
    const std::string folder = "/sys/fs/cgroup" + (group == "/" ? "" : group);
    const off most = number_after(beginning_of(folder + "/memory.max"), "", 1, kUnknown);  // or the word max
    if (most < kUnknown) {
      const off used = number_after(beginning_of(folder + "/memory.current"), "", 1, 0);
      const off cached = number_after(beginning_of(folder + "/memory.stat"), "\ninactive_file ", 1, 0);
      least = std::min(least, std::max<off>(most - used + cached, 0));
    }
    if (group.size() <= 1) return least;
  }
}

off free_addresses() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const off used = number_after(beginning_of("/proc/self/statm"), "", sysconf(_SC_PAGESIZE), 0);
  return std::max<off>((off)limit.rlim_cur - used, 0);
}

}  // namespace

off free_host_memory() {
  const std::string all = beginning_of("/proc/meminfo");
  const off available = number_after(all, "MemAvailable:", 1024, kUnknown);
  const off free = available < kUnknown ? available + number_after(all, "SwapFree:", 1024, 0) : kUnknown;
  return std::min({free, free_of_groups(), free_addresses()});
}

}  // namespace gs
