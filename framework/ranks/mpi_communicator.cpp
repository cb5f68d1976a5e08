#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "framework/error.h"
#include "framework/ranks/communicator.h"
#include "framework/ranks/join_limit.h"
#include "framework/ranks/rank_monitor.h"
#include "framework/ranks/tcp_rendezvous.h"

namespace twiddle {

namespace {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ErrorKind::device, join(call, ": ", text));
}

constexpr double seconds_to_join = 60, seconds_to_connect = 20, seconds_of_silence = 30;

// Limits for one call: MPI counts in an int.
constexpr std::int64_t most_floats = std::int64_t(1) << 28;
constexpr std::int64_t most_bytes = std::int64_t(1) << 26;  // sent by all ranks together

// Ranks often share cores, and a call of MPI that waits keeps its core busy: here the wait gives it away, soon for a
// moment and later for longer.
class Wait {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  void pause() {
    if (seconds() < busy_seconds)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(seconds() < 0.1 ? 50 : 1000));
  }

 private:
  static constexpr double busy_seconds = 1e-3;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class MpiRanks final : public Communicator {
 public:
  MpiRanks() {
    int level = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    MPI_Comm_dup(MPI_COMM_WORLD, &all_);
    MPI_Comm_dup(MPI_COMM_WORLD, &last_);
    for (const MPI_Comm channel : {all_, last_}) MPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN);
    MPI_Comm_rank(all_, &rank_);
    MPI_Comm_size(all_, &size_);
  }
  ~MpiRanks() override {
    monitor_.reset();
    MPI_Comm_free(&all_);
    MPI_Comm_free(&last_);
    MPI_Finalize();
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  void monitor(const ReportText& warn) try {
    if (size_ > 1)
      monitor_ =
          std::make_unique<RankMonitor>(rank_, tcp_rendezvous(*this, seconds_to_connect).life, seconds_of_silence);
  } catch (const Error& error) {
    if (rank_ == 0 && warn)
      warn(join("no heartbeat monitoring: if a rank stops, the others wait for it; ranks cannot connect over TCP: ",
                error.what()));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void use(const Device& device) override {
    if (device.kind == Device::Kind::cpu) return;
    throw Error(ErrorKind::config, join("MPI joins ranks on CPUs only, but the config selects ", to_string(device),
                                        ": start them with --device cpu"));
  }

  void all_reduce(Stream& stream, float* values, std::int64_t count) override {
    require_cpu(stream);
    for (std::int64_t begin = 0; begin < count; begin += most_floats) {
      const auto part = static_cast<int>(std::min(most_floats, count - begin));
      MPI_Request request{};
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, values + begin, part, MPI_FLOAT, MPI_SUM, all_, &request),
                "MPI_Iallreduce");
      finish(request);
    }
  }

  void reduce_scatter(Stream& stream, float* values, std::int64_t count) override {
    const int shard = shard_of(stream, count);
    std::vector<float> own(static_cast<std::size_t>(shard));
    MPI_Request request{};
    check_mpi(MPI_Ireduce_scatter_block(values, own.data(), shard, MPI_FLOAT, MPI_SUM, all_, &request),
              "MPI_Ireduce_scatter_block");
    finish(request);
    std::copy(own.begin(), own.end(), values + std::int64_t(rank_) * shard);
  }

  void all_gather(Stream& stream, float* values, std::int64_t count) override {
    const int shard = shard_of(stream, count);
    MPI_Request request{};
    check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_FLOAT, values, shard, MPI_FLOAT, all_, &request), "MPI_Iallgather");
    finish(request);
  }

  void barrier() override {
    MPI_Request request{};
    check_mpi(MPI_Ibarrier(all_, &request), "MPI_Ibarrier");
    finish(request);
  }

  std::vector<std::string> gather(const std::string& text) override { return *gather_on(all_, text, {}); }
  std::optional<std::vector<std::string>> gather_last(const std::string& text, double seconds) override {
    return gather_on(last_, text, seconds);
  }

  void abort(int code) override {
    if (monitor_) monitor_->end_all(code);
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

  void while_waiting(WhileWaiting listener) override { listener_ = std::move(listener); }
  void when_lost(WhenLost listener) override {
    if (monitor_) monitor_->when_lost(std::move(listener));
  }

 private:
  static void require_cpu(const Stream& stream) {
    require(stream.device().kind == Device::Kind::cpu, "MPI sums on CPUs only, not on ", to_string(stream.device()));
  }

  int shard_of(const Stream& stream, std::int64_t count) const {
    require_cpu(stream);
    require(count % size_ == 0 && count / size_ <= most_floats, count, " floats in shards of ", size_, " ranks");
    return static_cast<int>(count / size_);
  }

  // False where that takes longer than there is time, if there is a limit.
  bool finish(MPI_Request& request, std::optional<double> limit = {}) {
    Wait wait;
    for (int done = 0;;) {
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return true;
      if (limit && wait.seconds() > *limit) return false;
      wait.pause();
      if (listener_ && !limit) listener_(wait.seconds());
    }
  }

  // Gathers the length of each string, then the strings. An abandoned gather leaves its memory to MPI, which may still
  // write there: the process is about to exit.
  std::optional<std::vector<std::string>> gather_on(MPI_Comm channel, const std::string& text,
                                                    std::optional<double> limit) {
    const auto ranks = static_cast<std::size_t>(size_);
    auto sizes = std::make_unique<std::vector<std::int64_t>>(ranks + 1, static_cast<std::int64_t>(text.size()));
    MPI_Request request{};
    check_mpi(MPI_Iallgather(&sizes->back(), 1, MPI_INT64_T, sizes->data(), 1, MPI_INT64_T, channel, &request),
              "MPI_Iallgather");
    if (!finish(request, limit)) {
      static_cast<void>(sizes.release());
      return std::nullopt;
    }
    sizes->pop_back();
    std::vector<std::string> texts(ranks);
    const std::int64_t longest = *std::max_element(sizes->begin(), sizes->end()), part = most_bytes / size_;
    for (std::int64_t begin = 0; begin < longest; begin += part)
      append_parts(channel, text, *sizes, begin, part, texts);
    return texts;
  }

  // Appends what begins there in each rank's string, up to the size of a part. All ranks have come.
  void append_parts(MPI_Comm channel, const std::string& text, const std::vector<std::int64_t>& sizes,
                    std::int64_t begin, std::int64_t part, std::vector<std::string>& texts) {
    std::vector<int> counts, places;
    int all = 0;
    for (const std::int64_t size : sizes) {
      places.push_back(all);
      counts.push_back(static_cast<int>(std::clamp<std::int64_t>(size - begin, 0, part)));
      all += counts.back();
    }
    std::string received(static_cast<std::size_t>(all), ' ');
    const int own = counts[static_cast<std::size_t>(rank_)];
    MPI_Request request{};
    check_mpi(MPI_Iallgatherv(text.data() + (own > 0 ? begin : 0), own, MPI_CHAR, received.data(), counts.data(),
                              places.data(), MPI_CHAR, channel, &request),
              "MPI_Iallgatherv");
    finish(request);
    for (std::size_t i = 0; i < texts.size(); ++i)
      texts[i].append(received, static_cast<std::size_t>(places[i]), static_cast<std::size_t>(counts[i]));
  }

  MPI_Comm all_{}, last_{};
  int rank_ = 0, size_ = 1;
  WhileWaiting listener_;
  std::unique_ptr<RankMonitor> monitor_;  // null: ranks are not monitored
};

}  // namespace

bool has_mpi() {
  return true;
}

std::unique_ptr<Communicator> make_mpi_ranks(const ReportText& warn, const ReportText& report_missing) {
  const auto limited = [&](const std::function<void()>& work) {
    std::optional<JoinLimit> limit;
    if (report_missing) limit.emplace(own_launch(), seconds_to_join, report_missing);
    work();
  };
  std::unique_ptr<MpiRanks> ranks;
  limited([&] { ranks = std::make_unique<MpiRanks>(); });
  limited([&] { ranks->monitor(warn); });
  return ranks;
}

}  // namespace twiddle
