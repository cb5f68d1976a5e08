#pragma once
#include <cstddef>
#include <filesystem>

namespace twiddle {

// Bytes that this process can still take: the least of what the machine has available, with its swap, what the limits
// of its control groups leave, and what its address space (`ulimit -v`) leaves. 0: not known. `proc` is where the
// kernel tells of itself; tests have their own.
std::size_t free_memory(const std::filesystem::path& proc = "/proc");

// Bytes of this process that are in memory now: code, stacks and heap.
std::size_t resident_memory(const std::filesystem::path& proc = "/proc");

}  // namespace twiddle
