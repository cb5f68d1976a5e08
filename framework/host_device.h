#pragma once

// TWIDDLE_HD marks a function for both devices where nvcc compiles it.
#ifdef __CUDACC__
#define TWIDDLE_HD __host__ __device__
#else
#define TWIDDLE_HD
#endif
