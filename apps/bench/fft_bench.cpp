#include "apps/bench/fft_bench.h"

#include <algorithm>
#include <numeric>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "framework/tensor.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {

namespace {

constexpr std::size_t gpu_limit = std::size_t(8) << 30, cpu_limit = std::size_t(256) << 20;

// Repeated noise.
void fill_with_noise(Stream& stream, void* memory, std::size_t bytes) {
  constexpr std::int64_t some = 1 << 18;
  const RandomSequence sequence{1};
  std::vector<float> noise;
  for (std::int64_t i = 0; i < some; ++i) noise.push_back(sequence.normal(i));
  const Tensor sample = Tensor::from(stream, {some}, noise);
  for (std::size_t at = 0; at < bytes; at += sample.bytes())
    stream.copy(static_cast<char*>(memory) + at, sample.read(), std::min(sample.bytes(), bytes - at));
}

}  // namespace

std::int64_t FftRow::bytes() const {
  const std::int64_t elements = std::int64_t(batch.height - missing) * (batch.width - missing);
  return batch.count * elements * std::int64_t(sizeof(float)) + static_cast<std::int64_t>(spectrum_bytes(batch));
}

FftBench::FftBench(Device device, double budget_ms) : ctx_(device), budget_ms_(budget_ms) {
  limit_ = on_gpu() ? gpu_limit : cpu_limit;
  if (!on_gpu()) fftw_ = Fftw::find();
  // cuFFT allocates the same amount
  if (const std::size_t free = ctx_.stream->memory().free) limit_ = std::min(limit_, free / 3);
}

std::string FftBench::vendor() const {
  if (on_gpu()) return "cuFFT";
  return fftw_ == nullptr ? "" : fftw_->version();
}

bool FftBench::fits(const FftBatch& batch) const {
  return plane_bytes(batch) + spectrum_bytes(batch) <= limit_;
}

double FftBench::time(const std::function<void()>& work) {
  constexpr double recorded_ms = 0.5;
  constexpr int most_calls = 64;
  Stream& stream = *ctx_.stream;
  work();
  if (!on_gpu()) return time_calls(stream, budget_ms_, work);
  const double once = time_in_a_row(stream, 1, work);
  const int calls = std::clamp(static_cast<int>(recorded_ms / std::max(once, 1e-3)), 1, most_calls);
  const auto graph = stream.capture([&] {
    for (int call = 0; call < calls; ++call) work();
  });
  if (graph == nullptr) return time_calls(stream, budget_ms_, work);
  graph->replay();
  return time_calls(stream, budget_ms_, [&] { graph->replay(); }) / calls;
}

double FftBench::copy_bytes_per_second() {
  // not a power of two, which would put both buffers on the same memory channels
  constexpr std::size_t bytes = 500'000'000;
  reserve(bytes, bytes);
  // Not captured: on an H200 a copy reached 2.76 TB/s replayed from a CUDA graph, and 4.1 TB/s launched directly.
  const double ms =
      time_calls(*ctx_.stream, budget_ms_, [&] { ctx_.stream->copy(spectra_.get(), planes_.get(), bytes); });
  return 2 * static_cast<double>(bytes) / (ms * 1e-3);
}

void FftBench::reserve(std::size_t planes, std::size_t spectra) {
  if (planes > plane_capacity_ || spectra > spectrum_capacity_) {
    planes_.reset(), spectra_.reset();
    plane_capacity_ = spectrum_capacity_ = 0;
    planes_ = ctx_.stream->allocate(planes), spectra_ = ctx_.stream->allocate(spectra);
    plane_capacity_ = planes, spectrum_capacity_ = spectra;
  }
  fill_with_noise(*ctx_.stream, planes_.get(), planes);
}

std::vector<FftRow> FftBench::run(const FftBatch& batch) {
  std::vector<FftRow> rows(2);
  rows[0].batch = rows[1].batch = batch, rows[1].inverse = true;
  on_gpu() ? run_on_gpu(rows) : run_on_cpu(rows);
  return rows;
}

void FftBench::run_on_gpu(std::vector<FftRow>& rows) {
  const FftBatch batch = rows.front().batch;
  FftBatch unpacked = batch;
  if (batch.layout == BinLayout::packed) unpacked.layout = BinLayout::frequency_major;
  const auto each_direction = [&](BatchedFft& fft, double FftRow::*milliseconds) {
    auto* const planes = static_cast<float*>(planes_.get());
    for (FftRow& row : rows)
      row.*milliseconds =
          time([&] { row.inverse ? fft.inverse(spectra_.get(), planes) : fft.forward(planes, spectra_.get()); });
  };
  const auto try_all = [&](std::string FftRow::*failure, const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      for (FftRow& row : rows) row.*failure = error.what();
    }
  };
  try_all(&FftRow::failure, [&] {
    reserve(plane_bytes(batch), std::max(spectrum_bytes(batch), spectrum_bytes(unpacked)));
    each_direction(*make_batched_fft(*ctx_.stream, batch), &FftRow::milliseconds);
  });
  try_all(&FftRow::vendor_failure,  // last, because its inverse overwrites the spectra
          [&] { each_direction(*make_cufft_batch(*ctx_.stream, unpacked), &FftRow::vendor_ms); });
  for (FftRow& row : rows)
    row.vendor_bytes = static_cast<std::int64_t>(plane_bytes(unpacked) + spectrum_bytes(unpacked));
}

void FftBench::run_on_cpu(std::vector<FftRow>& rows) {
  const SpectralBackend backend = cpu_fft();
  SpectralTransform& transform = *backend.transforms.front();
  FftBatch batch = rows.front().batch;
  const Planes planes = planes_of(batch);
  batch.layout = BinLayout::plane_major;
  reserve(plane_bytes(batch), std::max(transform.spectrum_bytes(planes), spectrum_bytes(batch)));
  run_engine(transform, planes, {}, rows);
  auto* const values = static_cast<float*>(planes_.get());
  for (FftRow& row : rows) {
    if (fftw_ == nullptr) continue;
    const auto plan = fftw_->plan(batch, row.inverse, values, spectra_.get());
    row.vendor_ms = time([&] { plan->run(); });
    row.vendor_bytes = static_cast<std::int64_t>(plane_bytes(batch) + spectrum_bytes(batch));
  }
}

std::vector<FftRow> FftBench::run_in_convolution(const FftBatch& batch, int missing) {
  const SpectralBackend backend = fbfft();
  if (backend.transforms.empty()) throw Error(ErrorKind::device, "a build without CUDA has no engine fbfft");
  std::vector<FftRow> rows(2);
  for (FftRow& row : rows) row.batch = batch, row.missing = missing;
  rows[1].inverse = true;
  Planes planes = planes_of(batch);
  planes.columns = std::gcd(batch.count, std::int64_t(64)), planes.rows = batch.count / planes.columns;
  planes.height -= missing, planes.width -= missing;
  planes.column_stride = std::int64_t(planes.height) * planes.width;
  planes.row_stride = planes.columns * planes.column_stride;
  reserve(plane_bytes(batch), spectrum_bytes(batch));
  const Tensor bias = Tensor::filled(*ctx_.stream, {planes.columns}, 0.5f);
  run_engine(*backend.transforms.front(), planes, {bias.read(), true}, rows);
  return rows;
}

void FftBench::run_engine(SpectralTransform& transform, const Planes& planes, const PlaneEpilogue& epilogue,
                          std::vector<FftRow>& rows) {
  const auto scratch = ctx_.stream->allocate(transform.scratch_bytes(planes));
  auto* const values = static_cast<float*>(planes_.get());
  for (FftRow& row : rows)
    row.milliseconds = time([&] {
      if (row.inverse)
        transform.inverse(ctx_, planes, spectra_.get(), values, epilogue, scratch.get());
      else
        transform.forward(ctx_, planes, values, spectra_.get(), scratch.get());
    });
}

}  // namespace twiddle
