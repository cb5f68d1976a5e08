#include "fft/cuda/products/cublas_products.h"

#include <algorithm>

#include "fft/cuda/products/blas.h"
#include "framework/error.h"

namespace twiddle {

namespace {

// The arguments of cuBLAS. Its matrices are column-major: a row-major matrix is a transposed one to it, and C = A B
// becomes C' = B' A'. So B comes first, and m and n change places.
struct Call {
  cublasOperation_t of_b, of_a;
  std::int64_t m, n, k, b_pitch, a_pitch, c_pitch;
  std::int64_t b_size, a_size, c_size;  // of a bin, all groups together
  std::int64_t b_step, a_step;          // from one term of a sum to the next
  cuComplex one{1, 0}, beta;
  const cuComplex *b, *a;
  cuComplex* c;

  Call(const FrequencyGemm& gemm, std::int64_t group, const void* a_spectrum, const void* b_spectrum, void* c_spectrum)
      : of_b(operation(gemm.transpose_b, gemm.conjugate_b)),
        of_a(operation(gemm.transpose_a, gemm.conjugate_a)),
        m(gemm.n),
        n(gemm.m),
        k(gemm.k),
        b_pitch(gemm.b().pitch),
        a_pitch(gemm.a().pitch),
        c_pitch(gemm.c().pitch),
        b_size(gemm.groups * gemm.k * gemm.n),
        a_size(gemm.groups * gemm.m * gemm.k),
        c_size(gemm.groups * gemm.m * gemm.n),
        b_step(gemm.transpose_b ? 1 : b_pitch),
        a_step(gemm.transpose_a ? a_pitch : 1),
        beta{gemm.accumulate ? 1.0f : 0.0f, 0},
        b(static_cast<const cuComplex*>(b_spectrum) + group * gemm.b().group_step),
        a(static_cast<const cuComplex*>(a_spectrum) + group * gemm.a().group_step),
        c(static_cast<cuComplex*>(c_spectrum) + group * gemm.c().group_step) {}

  static cublasOperation_t operation(bool transpose, bool conjugate) {
    require(transpose || !conjugate, "cuBLAS conjugates a factor only where it transposes it");
    return conjugate ? CUBLAS_OP_C : transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  }
};

// cuBLAS sums in one fp32 register, whose relative error grows as 1.9e-8 times the root of the number of products (two
// per complex term): longer sums are divided into parts of this length.
constexpr std::int64_t longest_sum = 4096;
// Tensor cores truncate what they add and do not round it, so that the error is biased and grows in proportion to the
// number of terms: 4.8e-3 for a million of them on an H200, where tf32 promises 1e-3.
constexpr std::int64_t longest_tf32_sum = 32768;

// Calls `multiply` for one part of k after the other, each of which accumulates in C.
template <class Multiply>
void add_up(Call call, std::int64_t longest, const Multiply& multiply) {
  constexpr std::int64_t multiple = 8;  // so that all parts have the alignment of the first
  const std::int64_t terms = call.k, parts = (terms + longest - 1) / longest;
  const std::int64_t part = (terms + parts * multiple - 1) / (parts * multiple) * multiple;
  for (std::int64_t first = 0; first < terms; first += part) {
    call.k = std::min(part, terms - first);
    multiply(call);
    call.b += part * call.b_step, call.a += part * call.a_step;
    call.beta = {1, 0};
  }
}

// The workspace for cuBLAS: for its own split k, in whole pages.
std::size_t workspace_bytes(const FrequencyGemm& gemm) {
  constexpr std::size_t parts = 8, page = 4096;
  const std::size_t wanted = parts * static_cast<std::size_t>(gemm.bins * gemm.m * gemm.n) * sizeof(cuComplex);
  return std::min(most_blas_workspace, (wanted + page - 1) / page * page);
}

// Groups are multiplied one after another, each for all bins: more of them would take too many launches.
constexpr std::int64_t most_groups = 8;

// The limit of a grid's dimensions y and z, which cuBLAS uses for the batch.
constexpr std::int64_t most_bins = 65535;

// One strided-batched call a group for up to most_bins bins.
class StridedProduct : public FrequencyProduct {
 public:
  explicit StridedProduct(std::shared_ptr<Blas> blas) : blas_(std::move(blas)) {}
  bool supports(const FrequencyGemm& gemm) const override { return gemm.groups <= most_groups && !gemm.is_depthwise(); }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override { return workspace_bytes(gemm); }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const cublasHandle_t handle = blas_->on(*ctx.stream, scratch, workspace_bytes(gemm));
    for (std::int64_t group = 0; group < gemm.groups; ++group)
      add_up(Call(gemm, group, a, b, c), keeps_fp32() ? longest_sum : longest_tf32_sum, [&](Call part) {
        for (std::int64_t first = 0; first < gemm.bins; first += most_bins) {
          const std::int64_t bins = std::min(most_bins, gemm.bins - first);
          check(multiply(handle, part, bins));
          part.b += bins * part.b_size, part.a += bins * part.a_size, part.c += bins * part.c_size;
        }
      });
  }

 private:
  virtual cublasStatus_t multiply(cublasHandle_t handle, const Call& call, std::int64_t bins) = 0;
  std::shared_ptr<Blas> blas_;
};

// By cgemm, or by cgemm3m with three real multiplications a complex one.
class Fp32Product final : public StridedProduct {
 public:
  using Function = decltype(&cublasCgemmStridedBatched_64);
  Fp32Product(std::string_view name, Function function, std::shared_ptr<Blas> blas)
      : StridedProduct(std::move(blas)), name_(name), function_(function) {}
  std::string_view name() const override { return name_; }

 private:
  cublasStatus_t multiply(cublasHandle_t handle, const Call& call, std::int64_t bins) override {
    return function_(handle, call.of_b, call.of_a, call.m, call.n, call.k, &call.one, call.b, call.b_pitch, call.b_size,
                     call.a, call.a_pitch, call.a_size, &call.beta, call.c, call.c_pitch, call.c_size, bins);
  }
  std::string_view name_;
  Function function_;
};

class Tf32Product final : public StridedProduct {
 public:
  using StridedProduct::StridedProduct;
  std::string_view name() const override { return "tf32"; }
  bool keeps_fp32() const override { return false; }

 private:
  cublasStatus_t multiply(cublasHandle_t handle, const Call& call, std::int64_t bins) override {
    return cublasGemmStridedBatchedEx_64(handle, call.of_b, call.of_a, call.m, call.n, call.k, &call.one, call.b,
                                         CUDA_C_32F, call.b_pitch, call.b_size, call.a, CUDA_C_32F, call.a_pitch,
                                         call.a_size, &call.beta, call.c, CUDA_C_32F, call.c_pitch, call.c_size, bins,
                                         CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
  }
};

// Multiplies real numbers, in fp32 or with factors rounded to TF32.
class RealProduct final : public FrequencyProduct {
 public:
  RealProduct(std::string_view name, bool fp32, std::shared_ptr<Blas> blas)
      : name_(name), fp32_(fp32), blas_(std::move(blas)) {}
  std::string_view name() const override { return name_; }
  SpectrumStorage storage() const override { return SpectrumStorage::real; }
  bool keeps_fp32() const override { return fp32_; }
  bool supports(const FrequencyGemm& gemm) const override { return gemm.groups == 1; }
  std::size_t scratch_bytes(const FrequencyGemm& gemm) const override { return workspace_bytes(gemm); }
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, void* c, void* scratch) override {
    const cublasHandle_t handle = blas_->on(*ctx.stream, scratch, workspace_bytes(gemm));
    const float one = 1, zero = 0;
    const std::int64_t a_pitch = gemm.transpose_a ? gemm.m : gemm.k, b_pitch = gemm.transpose_b ? gemm.k : gemm.n;
    const std::int64_t longest = fp32_ ? longest_real_sum : longest_tf32_sum;
    const std::int64_t parts = (gemm.k + longest - 1) / longest;
    const std::int64_t part = ((gemm.k + parts - 1) / parts + 7) / 8 * 8;  // all parts have the alignment of the first
    for (std::int64_t k = 0; k < gemm.k; k += part)
      // As in Call: B comes first, and m and n change places.
      check(cublasGemmStridedBatchedEx_64(
          handle, gemm.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, gemm.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, gemm.n,
          gemm.m, std::min(part, gemm.k - k), &one, static_cast<const float*>(b) + k * (gemm.transpose_b ? 1 : gemm.n),
          CUDA_R_32F, b_pitch, gemm.k * gemm.n, static_cast<const float*>(a) + k * (gemm.transpose_a ? gemm.m : 1),
          CUDA_R_32F, a_pitch, gemm.m * gemm.k, gemm.accumulate || k > 0 ? &one : &zero, c, CUDA_R_32F, gemm.n,
          gemm.m * gemm.n, gemm.bins, fp32_ ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT));
  }

 private:
  std::string_view name_;
  bool fp32_;
  std::shared_ptr<Blas> blas_;
};

}  // namespace

std::vector<std::unique_ptr<FrequencyProduct>> make_cublas_real_products() {
  const auto blas = std::make_shared<Blas>();
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  products.push_back(std::make_unique<RealProduct>("strided_batched", true, blas));
  products.push_back(std::make_unique<RealProduct>("tf32", false, blas));
  return products;
}

std::vector<std::unique_ptr<FrequencyProduct>> make_cublas_products() {
  const auto blas = std::make_shared<Blas>();
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  products.push_back(std::make_unique<Fp32Product>("strided_batched", cublasCgemmStridedBatched_64, blas));
  products.push_back(std::make_unique<Fp32Product>("3m", cublasCgemm3mStridedBatched_64, blas));
  products.push_back(std::make_unique<Tf32Product>(blas));
  return products;
}

}  // namespace twiddle
