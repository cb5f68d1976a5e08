#include "framework/error.h"
#include "framework/ranks/communicator.h"

namespace twiddle {

bool has_mpi() {
  return false;
}

std::unique_ptr<Communicator> make_mpi_ranks(const ReportText& /*warn*/, const ReportText& /*report_missing*/) {
  throw Error(ErrorKind::device,
              "several processes train together by MPI, and this program was built without it: install an MPI "
              "(libopenmpi-dev and openmpi-bin of Debian and Ubuntu) and build again with -DTWIDDLE_MPI=ON");
}

}  // namespace twiddle
