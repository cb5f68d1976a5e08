#pragma once

namespace twiddle {

// Binds each OpenMP thread of the calling thread, including itself, to a separate core, if the process has enough
// cores. While other programs run, the kernel may leave two threads on one core for seconds. Each then waits for the
// other at the end of every loop: docs/notes/cpu.md. Does nothing if there are fewer cores, or if the user set
// OMP_PROC_BIND or another variable that binds threads.
void bind_threads();

// For a thread that does other work than these: it may run on any core of the process, and not only on that of the
// thread that has started it.
void unbind_this_thread();

}  // namespace twiddle
