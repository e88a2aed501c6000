// The processors that this process may use.
#pragma once
#include <string>

namespace gs {

int usable_processors();

// Whether more threads of the machine want to run than it has processors. False where the system does not say it.
bool processors_are_taken();

// Whether this build has kernels that this processor can run: it may have been built for another one
// (cmake/levels.cmake).
bool simd_is_available();

// The quota of a control group in processors, rounded up; 0 without a quota (Linux kernel documentation, Control Group
// v2, "CPU Interface Files": cpu.max). `membership` is the text of /proc/self/cgroup, `root` the directory where the
// hierarchy is mounted.
int quota_of(const std::string& membership, const std::string& root);

// The first 4 KiB of a file; empty if it cannot be read.
std::string beginning_of(const std::string& path);

}  // namespace gs
