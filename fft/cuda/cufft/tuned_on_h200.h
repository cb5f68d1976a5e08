#pragma once

// Numbers of this folder that follow from no rule, and with which it was measured: on one NVIDIA H200 (sm_90) with CUDA
// 13.0. Results do not depend on them, and every GPU runs with all of them; on another some may not be the fastest.
namespace twiddle {

// Blocks that pad and crop, and how much of a plane each of their threads loads at once (pad_crop_device.h).
constexpr int plane_threads = 256, bytes_a_thread = 32;

// How much longer cuFFT takes for a point where the size has a factor of 3, 5 or 7 instead of 2, for each of them; and
// times as long for a row of odd length, which is not transformed as a complex one of half the length. Rough
// estimates: grids are sorted by them, and the slowest are left out.
constexpr double more_for_3 = 0.04, more_for_5 = 0.08, more_for_7 = 0.12, times_for_odd_rows = 1.3;

}  // namespace twiddle
