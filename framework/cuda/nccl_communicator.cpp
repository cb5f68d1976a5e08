#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <map>
#include <thread>
#include <tuple>

#include "framework/cuda/check.h"
#include "framework/cuda/cuda_event.h"
#include "framework/cuda/cuda_stream.h"
#include "framework/cuda/nccl_library.h"
#include "framework/error.h"
#include "framework/ranks/pack.h"
#include "framework/ranks/rank_lines.h"
#include "framework/ranks/rank_monitor.h"
#include "framework/ranks/rank_texts.h"
#include "framework/text.h"

namespace twiddle {

namespace {

constexpr double seconds_to_connect = 60, seconds_to_join = 120;
constexpr double seconds_of_silence = 30;  // after which a rank counts as gone

using SideStream = Handle<cudaStream_t, cudaStreamDestroy>;

// A GPU as no other is called, also where each process sees it as its first.
std::string identity_of_gpu(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index));
  std::string text;
  for (const char byte : properties.uuid.bytes) text += std::to_string(static_cast<unsigned char>(byte)) + '.';
  return text;
}

int version_of_nccl() {
  int version = 0;
  check_nccl(nccl().version(&version));
  return version;
}

// The GPU's identity, the host, and the version of NCCL.
using RankFacts = std::tuple<std::string, std::string, int>;

std::string facts_of_rank(const Device& device) {
  if (device.kind != Device::Kind::cuda)
    throw Error(ErrorKind::config,
                "NCCL joins ranks on GPUs only, but the config selects the CPU: "
                "start them by MPI, with --device cpu");
  return pack(identity_of_gpu(device.index), host_name(), version_of_nccl());
}

void refuse_two_on_one_gpu(const std::vector<RankFacts>& facts) {
  std::map<std::string, std::size_t> owners;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    const auto& [gpu, host, version] = facts[rank];
    const auto [owner, is_new] = owners.emplace(gpu, rank);
    if (!is_new)
      throw Error(ErrorKind::config, join("ranks ", owner->second, " and ", rank, " on ", host,
                                          " have the same GPU: start one process per GPU, and leave the device "
                                          "to the program (--device cuda)"));
  }
}

void refuse_two_versions(const std::vector<RankFacts>& facts) {
  const auto& [first_gpu, host_of_first, first] = facts.front();
  for (const auto& [gpu, host, version] : facts) {
    if (version != first)
      throw Error(ErrorKind::config, join("NCCL is of version ", first, " on ", host_of_first, " and ", version, " on ",
                                          host, ": give all ranks the same one"));
  }
}

// Allows NCCL to all-gather memory in windows by copies, which use no multiprocessors: they slow the overlapped forward
// pass of AlexNet by 0.1 ms, NCCL's kernels by 0.18 ms. A value set by the user is kept. NCCL has such copies from 2.28
// on.
void let_copies_all_gather() {
  constexpr int overwrite = 0;
  if (version_of_nccl() >= 22800) setenv("NCCL_CTA_POLICY", "2", overwrite);
}

// The default of containers is 64 MiB, too little for NCCL if GPUs cannot access each other directly.
std::string advice_where_nccl_fails() {
  constexpr std::size_t enough = std::size_t(256) << 20;
  std::string advice = "\n  set NCCL_DEBUG=WARN for more output";
  struct statvfs shared {};
  if (statvfs("/dev/shm", &shared) == 0 && shared.f_bavail * shared.f_frsize < enough)
    advice += join("; /dev/shm has ", format_bytes(shared.f_bavail * shared.f_frsize),
                   " left, and a container needs more (docker run --shm-size=1g)");
  return advice;
}

class NcclRanks final : public Communicator {
 public:
  explicit NcclRanks(const Launch& launch) : NcclRanks(launch, connect_ranks(launch, seconds_to_connect)) {}
  ~NcclRanks() override {
    monitor_.leave();  // first: the others then do not treat NCCL's errors as a failure
    // Aborts pending collectives: their results are not needed.
    if (comm_ != nullptr) static_cast<void>(nccl().abort(comm_));
    for (void* block : blocks_) static_cast<void>(nccl().release(block));
  }
  NcclRanks(const NcclRanks&) = delete;
  NcclRanks& operator=(const NcclRanks&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void use(const Device& device) override {
    if (comm_ != nullptr) return;
    std::vector<RankFacts> facts;
    for (const std::string& text : gather_or_fail(*this, [&] { return facts_of_rank(device); }))
      facts.push_back(unpack<std::string, std::string, int>(text));
    refuse_two_on_one_gpu(facts);
    refuse_two_versions(facts);
    let_copies_all_gather();
    const std::string id = gather_or_fail(*this, [&] { return rank_ == 0 ? new_id() : ""; }).front();
    make_current(device.index);
    comm_ = join_gpus(device.index, id);
    // Higher priority than concurrent kernels: sums are needed before what these compute.
    int least = 0, greatest = 0;
    check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    check(cudaStreamCreateWithPriority(side_.put(), cudaStreamNonBlocking, greatest));
    monitor_.add_check([comm = comm_] { return what_is_wrong(comm); });
  }

  void all_reduce(Stream& stream, float* values, std::int64_t count) override {
    check_nccl(nccl().all_reduce(values, values, unsigned_of(count), nccl_float, nccl_sum, comm(), native(stream)));
  }

  void reduce_scatter(Stream& stream, float* values, std::int64_t count) override {
    reduce_scatter_on(native(stream), values, count);
  }

  void all_gather(Stream& stream, float* values, std::int64_t count) override {
    all_gather_on(native(stream), values, count);
  }

  std::shared_ptr<Event> begin_reduce_scatter(Stream& stream, float* values, std::int64_t count) override {
    wait_on_side_stream(stream);
    reduce_scatter_on(side_.get(), values, count);
    return std::make_shared<CudaEvent>(side_.get(), CudaEvent::OrdersOnly());
  }

  std::shared_ptr<Event> begin_all_gather(Stream& stream, float* values, std::int64_t count) override {
    wait_on_side_stream(stream);
    all_gather_on(side_.get(), values, count);
    return std::make_shared<CudaEvent>(side_.get(), CudaEvent::OrdersOnly());
  }

  void limit_device_waits(double seconds) override { longest_wait_ = seconds; }

  // In a window that all ranks access directly, NCCL needs no internal copies and fewer multiprocessors. Without
  // windows the memory works like any other. It is freed with the communicator: its tensors are freed before. A rank
  // that fails must not wait for the others here.
  std::shared_ptr<void> allocate(Stream& stream, std::int64_t count) override {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    monitor_.monitor_waits([wait = host_wait_of(stream)] { return wait->seconds(); }, longest_wait_);
    make_current(stream.device().index);
    void* block = nullptr;
    if (nccl().allocate == nullptr || nccl().allocate(&block, bytes) != nccl_success) return stream.allocate(bytes);
    blocks_.push_back(block);
    NcclWindow window = nullptr;
    static_cast<void>(nccl().register_window(comm(), block, bytes, &window, nccl_symmetric_window));
    return {block, [](void* /*block*/) {}};
  }

  void barrier() override { static_cast<void>(gather("")); }

  std::vector<std::string> gather(const std::string& text) override {
    if (std::optional<std::vector<std::string>> texts = texts_.gather(text, {}, listener_)) return *std::move(texts);
    // A rank has exited: the monitor will detect it and end this process.
    std::this_thread::sleep_for(std::chrono::seconds(5));
    throw Error("a rank disconnected while the others waited for it");
  }
  std::optional<std::vector<std::string>> gather_last(const std::string& text, double seconds) override {
    return last_.gather(text, seconds, {});
  }

  void abort(int code) override { monitor_.end_all(code); }
  void while_waiting(WhileWaiting listener) override { listener_ = std::move(listener); }
  void when_lost(WhenLost listener) override { monitor_.when_lost(std::move(listener)); }

 private:
  NcclRanks(const Launch& launch, RankLines lines)
      : rank_(launch.rank),
        size_(launch.size),
        texts_(rank_, std::move(lines.texts)),
        last_(rank_, std::move(lines.last)),
        monitor_(rank_, std::move(lines.life), seconds_of_silence) {}

  static std::size_t unsigned_of(std::int64_t count) { return static_cast<std::size_t>(count); }
  static cudaStream_t native(Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

  static std::string new_id() {
    NcclId id{};
    check_nccl(nccl().unique_id(&id));
    return {id.bytes, sizeof id.bytes};
  }

  static std::string what_is_wrong(NcclComm comm) {
    NcclResult result = nccl_success;
    if (nccl().async_error(comm, &result) != nccl_success) return "";
    if (result == nccl_success || result == nccl_in_progress) return "";
    return join("NCCL: ", nccl().error_string(result), ": another rank, or the network to it, has failed");
  }

  // Runs on a separate thread: NCCL waits for all ranks without a timeout.
  NcclComm join_gpus(int gpu, const std::string& bytes) {
    NcclId id{};
    bytes.copy(id.bytes, sizeof id.bytes);
    std::packaged_task<NcclComm()> task([gpu, id, rank = rank_, size = size_] {
      make_current(gpu);
      NcclComm made = nullptr;
      check_nccl(nccl().init_rank(&made, size, id, rank));
      return made;
    });
    std::future<NcclComm> joined = task.get_future();
    std::thread(std::move(task)).detach();
    const auto start = std::chrono::steady_clock::now();
    while (joined.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (listener_) listener_(seconds);
      if (seconds > seconds_to_join)
        throw Error(ErrorKind::device,
                    join("NCCL has not joined the GPUs within ", seconds_to_join,
                         " s\n  Set NCCL_SOCKET_IFNAME to the network to use, and NCCL_DEBUG=INFO for more output"));
    }
    try {
      return joined.get();
    } catch (const Error& error) {
      throw Error(ErrorKind::device, error.what() + advice_where_nccl_fails());
    }
  }

  NcclComm comm() const {
    require(comm_ != nullptr, "collective called before use(device)");
    return comm_;
  }

  void reduce_scatter_on(cudaStream_t stream, float* values, std::int64_t count) {
    const std::int64_t shard = count / size_;
    check_nccl(nccl().reduce_scatter(values, values + rank_ * shard, unsigned_of(shard), nccl_float, nccl_sum, comm(),
                                     stream));
  }

  void all_gather_on(cudaStream_t stream, float* values, std::int64_t count) {
    const std::int64_t shard = count / size_;
    check_nccl(nccl().all_gather(values + rank_ * shard, values, unsigned_of(shard), nccl_float, comm(), stream));
  }

  // The side stream's work starts after everything submitted to the stream so far.
  void wait_on_side_stream(Stream& stream) {
    const CudaEvent given(native(stream), CudaEvent::OrdersOnly());
    check(cudaStreamWaitEvent(side_.get(), given.event()));
  }

  int rank_, size_;
  double longest_wait_ = 45;  // seconds of all ranks for their GPUs
  NcclComm comm_ = nullptr;
  SideStream side_;
  std::vector<void*> blocks_;
  WhileWaiting listener_;
  RankTexts texts_, last_;
  RankMonitor monitor_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_ranks(const Launch& launch) {
  return std::make_unique<NcclRanks>(launch);
}

}  // namespace twiddle
