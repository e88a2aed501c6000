// The processors that this process may use.
#pragma once
#include <string>

namespace gs {

int usable_processors();

// As many as a control group's quota is worth, a part of one counted whole; 0 without a quota (Linux kernel
// documentation, Control Group v2, "CPU Interface Files": cpu.max). `membership` is what /proc/self/cgroup says,
// `root` where the hierarchy is mounted.
int quota_of(const std::string& membership, const std::string& root);

// Of a file, up to 4 KiB; empty where there is none.
std::string beginning_of(const std::string& path);

}  // namespace gs
