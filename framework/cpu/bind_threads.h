#pragma once

namespace twiddle {

// Gives each of the calling thread's OpenMP threads, itself among them, a core of its own, where there are as many as
// cores for this process. Beside other programs the kernel leaves two of them on one core for seconds, where each waits
// for the other at the end of every loop: docs/notes/cpu.md. Where there are fewer, the kernel keeps its choice, and so
// does the user who has set OMP_PROC_BIND or another variable that binds threads.
void bind_threads();

// For a thread that does other work than these: it may run on any core of the process, and not only on that of the
// thread that has started it.
void unbind_this_thread();

}  // namespace twiddle
