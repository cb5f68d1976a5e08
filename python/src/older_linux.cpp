// What glibc has since 2.32 and headers of libstdc++ ask for: whether counts of references may do without atomic
// operations. Older ones do not tell, so that this library goes without the answer of newer ones, too (manylinux.py).
extern "C" {
char __libc_single_threaded = 0;  // NOLINT: glibc's name
}
