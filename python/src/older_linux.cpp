#include <sys/stat.h>

// Defines what this library takes from newer versions of glibc, for those without it (manylinux.py).
extern "C" {

// Headers of libstdc++ read it: whether reference counts can do without atomic operations. glibc has it since 2.32.
char __libc_single_threaded = 0;  // NOLINT: glibc's name

// stat and fstat are functions since glibc 2.33. Older headers call these with the version of `struct stat`.
int __xstat(int version, const char* path, struct stat* result) noexcept;  // NOLINT: glibc's names
int __fxstat(int version, int file, struct stat* result) noexcept;
#ifdef __x86_64__
constexpr int stat_version = 1;
#else
constexpr int stat_version = 0;
#endif
int stat(const char* path, struct stat* result) noexcept {
  return __xstat(stat_version, path, result);
}
int fstat(int file, struct stat* result) noexcept {
  return __fxstat(stat_version, file, result);
}
}
