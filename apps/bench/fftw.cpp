#include "apps/bench/fftw.h"

#include <dlfcn.h>
#include <omp.h>

#include "framework/error.h"

namespace twiddle {

// The used part of FFTW's interface. Complex numbers are pairs of floats, and plans are pointers.
struct Fftw::Functions {
  using Pair = float[2];
  void* (*plan_forward)(int rank, const int* size, int count, float* in, const int* in_size, int in_stride,
                        int in_distance, Pair* out, const int* out_size, int out_stride, int out_distance,
                        unsigned flags);
  void* (*plan_inverse)(int rank, const int* size, int count, Pair* in, const int* in_size, int in_stride,
                        int in_distance, float* out, const int* out_size, int out_stride, int out_distance,
                        unsigned flags);
  void (*execute)(void* plan);
  void (*destroy_plan)(void* plan);
  void (*set_time_limit)(double seconds);
  int (*init_threads)();
  void (*plan_with_threads)(int threads);
  const char* version;
};

namespace {

constexpr unsigned measured_plan = 0;  // FFTW_MEASURE
constexpr double seconds_to_plan = 1;

template <class Function>
bool load(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

std::unique_ptr<Fftw> Fftw::find() {
  void* const library = dlopen("libfftw3f.so.3", RTLD_NOW | RTLD_GLOBAL);  // the threads library needs it
  if (library == nullptr) return nullptr;
  auto all = std::make_unique<Functions>();
  const bool whole =
      load(library, "fftwf_plan_many_dft_r2c", all->plan_forward) &&
      load(library, "fftwf_plan_many_dft_c2r", all->plan_inverse) && load(library, "fftwf_execute", all->execute) &&
      load(library, "fftwf_destroy_plan", all->destroy_plan) &&
      load(library, "fftwf_set_timelimit", all->set_time_limit) && load(library, "fftwf_version", all->version);
  if (!whole) return nullptr;
  for (const char* name : {"libfftw3f_omp.so.3", "libfftw3f_threads.so.3"}) {
    void* const threads = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (threads == nullptr || !load(threads, "fftwf_init_threads", all->init_threads) ||
        !load(threads, "fftwf_plan_with_nthreads", all->plan_with_threads) || all->init_threads() == 0)
      continue;
    all->plan_with_threads(omp_get_max_threads());
    break;
  }
  all->set_time_limit(seconds_to_plan);
  return std::unique_ptr<Fftw>(new Fftw(std::move(all)));
}

Fftw::Fftw(std::unique_ptr<Functions> functions) : functions_(std::move(functions)) {}
Fftw::~Fftw() = default;

std::string Fftw::version() const {
  return functions_->version;
}

std::unique_ptr<Fftw::Plan> Fftw::plan(const FftBatch& batch, bool inverse, float* planes, void* spectra) const {
  require(batch.layout == BinLayout::plane_major, "FFTW computes plane-major spectra only");
  const int size[] = {batch.height, batch.width}, count = static_cast<int>(batch.count);
  const int plane = batch.height * batch.width, bins = static_cast<int>(bins_of(batch));
  auto* const numbers = static_cast<Functions::Pair*>(spectra);
  void* const plan = inverse ? functions_->plan_inverse(2, size, count, numbers, nullptr, 1, bins, planes, nullptr, 1,
                                                        plane, measured_plan)
                             : functions_->plan_forward(2, size, count, planes, nullptr, 1, plane, numbers, nullptr, 1,
                                                        bins, measured_plan);
  require(plan != nullptr, "FFTW makes no plan of ", to_string(batch));
  return std::make_unique<Plan>(*functions_, plan);
}

Fftw::Plan::~Plan() {
  functions_.destroy_plan(plan_);
}

void Fftw::Plan::run() {
  functions_.execute(plan_);
}

}  // namespace twiddle
