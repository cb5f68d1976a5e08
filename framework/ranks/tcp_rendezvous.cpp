#include "framework/ranks/tcp_rendezvous.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "framework/error.h"
#include "framework/ranks/pack.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Identifies the machine's network: containers and network namespaces of one machine may share a host name.
std::string network_of_process() {
  char link[256] = "";
  const ssize_t length = readlink("/proc/self/ns/net", link, sizeof link - 1);
  return join(host_name(), "/", std::string(link, static_cast<std::size_t>(length > 0 ? length : 0)));
}

// The first address at which rank 0 answers from here.
SocketPlace place_of_rank_0(const std::string& text, double patience) {
  const auto [network, port, addresses] = unpack<std::string, int, std::vector<std::string>>(text);
  if (network == network_of_process()) return {"127.0.0.1", port};
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  do {
    for (const std::string& address : addresses)
      if (connect_to({address, port})) return {address, port};
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (std::chrono::steady_clock::now() < end);
  throw Error(ErrorKind::device,
              join("rank 0 (", network, ") cannot be reached over TCP at port ", port, " of ", join_names(addresses)));
}

}  // namespace

RankLines tcp_rendezvous(Communicator& ranks, double patience) {
  const bool first = ranks.rank() == 0;
  const int port = first ? free_port() : 0;
  const std::string own = first ? pack(network_of_process(), port, addresses_of_machine()) : "";
  const std::string of_rank_0 = ranks.gather(own).front();
  const std::string token = ranks.gather(first ? random_token() : "").front();
  const std::vector<std::string> networks = ranks.gather(network_of_process());
  const auto is_here = [&](const std::string& network) { return network == networks.front(); };
  const bool all_here = std::all_of(networks.begin(), networks.end(), is_here);  // then other machines cannot connect
  const SocketPlace place = first ? SocketPlace{all_here ? "127.0.0.1" : "0.0.0.0", port}  //
                                  : place_of_rank_0(of_rank_0, patience);
  return connect_ranks({ranks.rank(), ranks.size(), 0, "", place, token}, patience);
}

}  // namespace twiddle
