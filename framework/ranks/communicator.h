#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/device.h"
#include "framework/error.h"
#include "framework/ranks/launch.h"

namespace twiddle {

// What joins the ranks has failed: none of them goes on.
class RanksFailed : public Error {
 public:
  explicit RanksFailed(const std::string& message) : Error(ErrorKind::device, message) {}
};

// What joins the processes ("ranks") that train one network together, as one of them sees it. All ranks call the same
// functions in the same order, and a call ends when all have come to it. The transport of numbers is an existing
// library's: MPI between CPUs, NCCL between GPUs.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // 0 .. size() - 1; rank 0 talks to people and writes files
  virtual int size() const = 0;

  // Prepares collectives on this device; call before the first one. An Error on one rank is an Error on all.
  virtual void use(const Device& /*device*/) {}

  // Before allocate(): all ranks end if each has waited this long for its device, which then hangs. 0: no limit.
  virtual void limit_device_waits(double /*seconds*/) {}

  // Replaces each of these floats, which are on the stream's device, by its sum over all ranks, in the stream's order.
  // The result is bitwise identical on all ranks, and from run to run with the same number of ranks.
  virtual void all_reduce(Stream& stream, float* values, std::int64_t count) = 0;
  // The two halves of an all-reduce. A rank's shard is the rank-th of size() equal parts; `count` is a multiple of
  // size(). reduce_scatter() sums the shards, each on its rank, and leaves undefined values in the other ranks' shards;
  // all_gather() copies each rank's shard to all ranks.
  virtual void reduce_scatter(Stream& stream, float* values, std::int64_t count) = 0;
  virtual void all_gather(Stream& stream, float* values, std::int64_t count) = 0;
  // The same, overlapped with later work of the stream: they begin after the work that the stream has been given so
  // far, in the order of the calls. The event marks their end; null: they have ended.
  virtual std::shared_ptr<Event> begin_reduce_scatter(Stream& stream, float* values, std::int64_t count) {
    reduce_scatter(stream, values, count);
    return nullptr;
  }
  virtual std::shared_ptr<Event> begin_all_gather(Stream& stream, float* values, std::int64_t count) {
    all_gather(stream, values, count);
    return nullptr;
  }
  // Memory on the stream's device for `count` floats, on which collectives are fastest. All ranks call it in the same
  // order with the same counts.
  virtual std::shared_ptr<void> allocate(Stream& stream, std::int64_t count) {
    return stream.allocate(static_cast<std::size_t>(count) * sizeof(float));
  }
  virtual void barrier() = 0;
  // On the host: a small text of each rank, by rank; every rank gets all.
  virtual std::vector<std::string> gather(const std::string& text) = 0;

  // For ranks that end: what gather() does, on a channel of its own, so that it does not matter what the others wait
  // for. Nothing where not all of them come within those seconds.
  virtual std::optional<std::vector<std::string>> gather_last(const std::string& text, double seconds) = 0;
  // Ends all ranks at once, this one with that exit code, whatever they are doing.
  virtual void abort(int code) = 0;  // does not return

  // Is called now and then while a call waits for other ranks, with the seconds that it has waited.
  using WhileWaiting = std::function<void(double seconds)>;
  virtual void while_waiting(WhileWaiting listener) = 0;

  // Is called on a thread of the communicator's where another rank is gone, right before that ends this process, too.
  using WhenLost = std::function<void(const std::string& who)>;
  virtual void when_lost(WhenLost /*listener*/) {}
};

std::unique_ptr<Communicator> make_one_rank();  // of a process that trains by itself

// Joins the processes that an MPI launcher has started; leaves MPI when it goes. An Error of kind device where this
// build has no MPI. Rank 0 warns if ranks cannot send heartbeats. If a rank does not come within 60 s, it is reported
// and this process ends, unless `report_missing` is empty: MPI itself waits without limit.
using ReportText = std::function<void(const std::string&)>;
std::unique_ptr<Communicator> make_mpi_ranks(const ReportText& warn = {}, const ReportText& report_missing = {});
bool has_mpi();

// Joins processes with a GPU each, however they were started: they meet at the launch's meeting place. An Error of kind
// device where they do not all come, or where this build has no CUDA side.
std::unique_ptr<Communicator> make_nccl_ranks(const Launch& launch);

bool any(Communicator& ranks, bool flag);  // on all ranks: whether it is true on one of them

// Makes a text on each rank and gathers them. If one rank fails, all throw its Error, with the rank's number: none
// continues without the others. If one is stopped, all throw Interrupted.
std::vector<std::string> gather_or_fail(Communicator& ranks, const std::function<std::string()>& make);

}  // namespace twiddle
