#pragma once
#include <cstddef>
#include <filesystem>

namespace twiddle {

// Returns the bytes that this process can still allocate: the minimum of the machine's available memory and swap, of
// what the limits of its control groups leave, and of what its address space (`ulimit -v`) leaves. 0: unknown. `proc`
// is the kernel's folder; tests use another one.
std::size_t free_memory(const std::filesystem::path& proc = "/proc");

// Bytes of this process that are in memory now: code, stacks and heap.
std::size_t resident_memory(const std::filesystem::path& proc = "/proc");

}  // namespace twiddle
