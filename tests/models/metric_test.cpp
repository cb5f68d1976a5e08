#include "models/evaluation/metric.h"

#include <gtest/gtest.h>

namespace twiddle {
namespace {

std::vector<std::string> names_of(TargetKind kind) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics_of(kind)) names.emplace_back(metric.name);
  return names;
}

TEST(Metric, DependsOnTargetKind) {
  EXPECT_EQ(names_of(TargetKind::label), (std::vector<std::string>{"loss", "top1", "top5"}));
  EXPECT_EQ(names_of(TargetKind::labels), (std::vector<std::string>{"loss", "map"}));
  EXPECT_EQ(names_of(TargetKind::input), (std::vector<std::string>{"loss", "psnr"}));
  EXPECT_EQ(names_of(TargetKind::image), (std::vector<std::string>{"loss", "psnr"}));
}

TEST(Metric, ComparesAndFormatsValues) {
  const std::vector<Metric> metrics = metrics_of(TargetKind::label);
  EXPECT_TRUE(metrics.at(0).better(1, 2));
  EXPECT_TRUE(metrics.at(1).better(0.9, 0.8));
  EXPECT_FALSE(metrics.at(1).better(0.9, 0.9));
  EXPECT_EQ(metrics.at(0).text(0.412), "0.4120");
  EXPECT_EQ(metrics.at(1).text(0.97641), "97.64%");
  EXPECT_EQ(metrics_of(TargetKind::input).at(1).text(24.314), "24.31 dB");
}

}  // namespace
}  // namespace twiddle
