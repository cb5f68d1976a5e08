#pragma once
#include <cstdint>

#include "framework/host_device.h"

// An operand's part of a step in shared memory, and how tensor cores read it.
namespace twiddle::tensor_core {

// k_major_128: numbers along k are adjacent, in rows of 128 bytes with the 128-byte swizzle. A row has Depth k of each
// of 64 / Depth planes, one plane after another; the rows of all lines follow each other, then those of the next
// planes. mn_major_64 and mn_major_128: lines are adjacent, in rows of 64 or 128 bytes with that swizzle: [line /
// 32][plane][k][32 lines], or 64 for 32. (PTX ISA, "Shared Memory Matrix Layout".)
enum class Layout : std::uint8_t { k_major_128, mn_major_64, mn_major_128 };

// `Lines` rows of A or columns of B, `Depth` k, and `Planes` 16-bit numbers of each element. Panels begin at multiples
// of 1024 bytes.
template <Layout L, int Lines, int Depth, int Planes>
struct Panel {
  static constexpr bool k_major = L == Layout::k_major_128;
  static constexpr int lines = Lines, depth = Depth, planes = Planes;
  static constexpr int bytes = Lines * Depth * Planes * 2;
  static constexpr int row_bytes = L == Layout::mn_major_64 ? 64 : 128;
  static constexpr int planes_a_row = k_major ? 64 / Depth : 1;
  static constexpr int group = row_bytes / 2, group_bytes = Planes * Depth * row_bytes;  // of adjacent lines
  static_assert(!k_major || (64 % Depth == 0 && Planes % planes_a_row == 0), "rows have 128 bytes");
  static_assert(Lines % 64 == 0 && Depth % 16 == 0);

  // Bytes from the panel's beginning to a number. All else in this struct follows from it.
  TWIDDLE_HD static constexpr int place(int plane, int line, int k) {
    const unsigned plain = unswizzled(plane, line, k);
    return static_cast<int>(plain ^ (plain >> 7 & (row_bytes == 128 ? 7u : 3u)) << 4);
  }

  // Where a lane of a warp points ldmatrix for 16 lines and 16 k of a plane, transposed unless k_major: matrices are
  // lines 0 to 7 and 8 to 15 of k 0 to 7, then the same of k 8 to 15.
  TWIDDLE_HD static constexpr int fragment_row(int plane, int first_line, int first_k, int lane) {
    if constexpr (k_major) return place(plane, first_line + lane % 16, first_k + lane / 16 * 8);
    return place(plane, first_line + lane / 8 % 2 * 8, first_k + lane % 8 + lane / 16 * 8);
  }

  // Describes the numbers of 16 k and of lines from a multiple of 64 on to wgmma, for a panel at a shared address.
  TWIDDLE_HD static constexpr std::uint64_t descriptor(unsigned panel, int plane, int first_line, int first_k) {
    constexpr std::uint64_t swizzle = std::uint64_t(row_bytes == 128 ? 1 : 2) << 62;
    // k_major: 8 lines are 8 rows apart, and the other stride is not used. Else groups of lines are group_bytes apart,
    // and 8 k are 8 rows.
    constexpr std::uint64_t leading = k_major ? 1 : group_bytes / 16, stride = 8 * row_bytes / 16;
    return ((panel + unswizzled(plane, first_line, first_k)) & 0x3ffff) >> 4 | leading << 16 | stride << 32 | swizzle;
  }

 private:
  // The place if rows were not swizzled: the hardware changes bits of an address by bits above.
  TWIDDLE_HD static constexpr unsigned unswizzled(int plane, int line, int k) {
    if constexpr (k_major)
      return static_cast<unsigned>(plane / planes_a_row * Lines * row_bytes + line * row_bytes +
                                   (plane % planes_a_row * Depth + k) * 2);
    else
      return static_cast<unsigned>(line / group * group_bytes + (plane * Depth + k) * row_bytes + line % group * 2);
  }
};

}  // namespace twiddle::tensor_core
