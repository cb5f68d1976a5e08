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

// Communication between the ranks has failed. No rank can continue.
class RanksFailed : public Error {
 public:
  explicit RanksFailed(const std::string& message) : Error(ErrorKind::device, message) {}
};

// What joins the processes ("ranks") that train one network together, as one of them sees it. All ranks call the same
// functions in the same order, and a call ends when all ranks have called it. The transport of numbers is an existing
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
  // The two steps of an all-reduce. A rank's shard is the rank-th of size() equal parts; `count` is a multiple of
  // size(). reduce_scatter() sums the shards, each on its rank, and leaves undefined values in the other ranks' shards;
  // all_gather() copies each rank's shard to all ranks.
  virtual void reduce_scatter(Stream& stream, float* values, std::int64_t count) = 0;
  virtual void all_gather(Stream& stream, float* values, std::int64_t count) = 0;
  // The same, overlapped with later work of the stream: they begin after the work that the stream has been given so
  // far, in the order of the calls. The event marks their end; null: they are complete.
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
  // On the host: all-gathers a small string from each rank, ordered by rank.
  virtual std::vector<std::string> gather(const std::string& text) = 0;

  // gather() for ranks that are exiting, on a separate channel, so that it works whatever the other ranks wait for.
  // Returns nullopt if not all ranks call it within that many seconds.
  virtual std::optional<std::vector<std::string>> gather_last(const std::string& text, double seconds) = 0;
  // Ends all ranks at once, this one with that exit code, whatever they are doing.
  virtual void abort(int code) = 0;  // does not return

  // Called periodically while a call waits for other ranks, with the seconds waited so far.
  using WhileWaiting = std::function<void(double seconds)>;
  virtual void while_waiting(WhileWaiting listener) = 0;

  // Called on a thread of the communicator if another rank is lost, right before this process exits as well.
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

// Joins processes with a GPU each, however they were started. They rendezvous at the launch's address. Throws an Error
// of kind device if not all ranks arrive, or if this build has no CUDA.
std::unique_ptr<Communicator> make_nccl_ranks(const Launch& launch);

bool any(Communicator& ranks, bool flag);  // on all ranks: whether it is true on one of them

// Makes a string on each rank and gathers them. If one rank fails, all throw its Error, with the rank's number: none
// continues without the others. If one is stopped, all throw Interrupted.
std::vector<std::string> gather_or_fail(Communicator& ranks, const std::function<std::string()>& make);

}  // namespace twiddle
