// Products of linear layers by split fp16, in all three forms, against sums in double on random problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "fft/pair_product.h"
#include "framework/random.h"
#include "tests/support/on_gpu.h"
#include "tests/support/problem_seeds.h"

namespace twiddle {
namespace {

constexpr int sampled_of_c = 3000;  // elements of C that are compared with the reference

// op(A) op(B), with A and B as stored in memory.
struct RandomProduct {
  Gemm gemm;
  std::vector<float> a, b;

  float& a_at(std::int64_t row, std::int64_t i) {
    return a[static_cast<std::size_t>(gemm.transpose_a ? i * gemm.m + row : row * gemm.k + i)];
  }
  float& b_at(std::int64_t i, std::int64_t column) {
    return b[static_cast<std::size_t>(gemm.transpose_b ? column * gemm.k + i : i * gemm.n + column)];
  }
  double expected(std::int64_t row, std::int64_t column) {
    double sum = 0;
    for (std::int64_t i = 0; i < gemm.k; ++i) sum += double(a_at(row, i)) * b_at(i, column);
    return sum;
  }
};

class PairProductProblems : public OnGpu, public testing::WithParamInterface<int> {
 protected:
  // Returns a random number from `least` to `most`.
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + random_.below(draw_++, most - least + 1);
  }
  bool one_in(int n) { return between(1, n) == 1; }

  RandomProduct sized(std::int64_t m, std::int64_t n, std::int64_t k);
  void put_lines_apart(RandomProduct& problem);
  void hold_to_sums_in_double(const std::string& form, RandomProduct problem);

  struct Seen {
    int runs = 0;
    double worst = 0;
  };
  std::map<std::string, Seen> seen_;  // by form and tensor cores

 private:
  RandomSequence random_{static_cast<std::uint64_t>(200 + GetParam())};
  std::int64_t draw_ = 0;
};

// Either factor may be the smaller one, and each may be transposed. In two thirds of the problems all dimensions are
// multiples of four, which the kernels for few rows and for short sums require.
RandomProduct PairProductProblems::sized(std::int64_t m, std::int64_t n, std::int64_t k) {
  RandomProduct problem;
  if (one_in(2)) std::swap(m, n);
  if (!one_in(3))
    for (std::int64_t* const length : {&m, &n, &k}) *length = (*length + 3) / 4 * 4;
  problem.gemm = {.transpose_a = one_in(2), .transpose_b = one_in(2), .m = m, .n = n, .k = k};
  const RandomSequence values(static_cast<std::uint64_t>(draw_++));
  problem.a.resize(static_cast<std::size_t>(m * k)), problem.b.resize(static_cast<std::size_t>(k * n));
  std::int64_t number = 0;
  for (float& value : problem.a) value = 2 * values.uniform(number++) - 1;
  for (float& value : problem.b) value = 2 * values.uniform(number++) - 1;
  return problem;
}

// Every third k five decades larger in A and smaller in B, and every fifth row of A three decades larger.
void PairProductProblems::put_lines_apart(RandomProduct& problem) {
  const Gemm& g = problem.gemm;
  for (std::int64_t i = 0; i < g.k; i += 3) {
    for (std::int64_t row = 0; row < g.m; ++row) problem.a_at(row, i) *= 1e5f;
    for (std::int64_t column = 0; column < g.n; ++column) problem.b_at(i, column) *= 1e-5f;
  }
  for (std::int64_t row = 0; row < g.m; row += 5)
    for (std::int64_t i = 0; i < g.k; ++i) problem.a_at(row, i) *= 1e3f;
}

void PairProductProblems::hold_to_sums_in_double(const std::string& form, RandomProduct problem) {
  if (one_in(4)) put_lines_apart(problem);
  const Gemm& g = problem.gemm;
  const Tensor a = on_device(problem.a), b = on_device(problem.b);
  for (const TensorCores cores : tensor_cores(stream().device())) {
    Tensor c = poisoned(Shape{g.m, g.n});
    run_pair_product(stream(), cores, pair_product_of(g, a.read(), b.read(), c.write()));
    const std::vector<float> found = on_host(c);
    double square = 0, norm = 0;
    for (int i = 0; i < sampled_of_c; ++i) {
      const std::int64_t row = between(0, g.m - 1), column = between(0, g.n - 1);
      const double wanted = problem.expected(row, column);
      const double difference = found[static_cast<std::size_t>(row * g.n + column)] - wanted;
      square += difference * difference, norm += wanted * wanted;
    }
    const double error = std::sqrt(square / norm);
    EXPECT_LE(error, 2e-6) << form << ": " << g.m << " x " << g.n << " x " << g.k << (g.transpose_a ? ", A^T" : "")
                           << (g.transpose_b ? ", B^T" : "") << (cores == TensorCores::mma ? ", mma" : ", wgmma");
    Seen& seen = seen_[form + (cores == TensorCores::mma ? ", mma" : ", wgmma")];
    ++seen.runs;
    seen.worst = std::isnan(error) ? error : std::max(seen.worst, error);
  }
}

TEST_P(PairProductProblems, AgreeWithSumsInDouble) {
  if (tensor_cores(stream().device()).empty()) GTEST_SKIP() << "no fp16 tensor cores";
  const int problems = problems_of_a_seed(6);
  for (int number = 0; number < problems; number += 3) {
    hold_to_sums_in_double("few rows", sized(between(1, 256), between(257, 4096), between(128, 3000)));
    hold_to_sums_in_double("short sums", sized(between(1000, 1500), between(1000, 1500), between(1, 128)));
    hold_to_sums_in_double("general", sized(between(257, 999), between(257, 1200), between(1, 1500)));
  }
  for (const auto& [form, seen] : seen_)
    std::printf("%s: %d runs, the worst error %.2e\n", form.c_str(), seen.runs, seen.worst);
}

INSTANTIATE_TEST_SUITE_P(OfSeed, PairProductProblems, testing::Range(0, seeds));

}  // namespace
}  // namespace twiddle
