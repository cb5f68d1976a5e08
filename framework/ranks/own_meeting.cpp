#include "framework/ranks/own_meeting.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "framework/error.h"

namespace twiddle {

namespace {

// The machine as its network has it: containers and network namespaces of one machine may bear one name.
std::string network_of_process() {
  char link[256] = "";
  const ssize_t length = readlink("/proc/self/ns/net", link, sizeof link - 1);
  return join(host_name(), "/", std::string(link, static_cast<std::size_t>(length > 0 ? length : 0)));
}

// A word each: the network, the port, and addresses.
std::string own_place(int port) {
  std::string text = join(network_of_process(), " ", port);
  for (const std::string& address : addresses_of_machine()) text += " " + address;
  return text;
}

// The first address at which rank 0 answers from here.
SocketPlace place_of_rank_0(const std::string& text, double patience) {
  std::istringstream words(text);
  std::string network;
  SocketPlace place;
  words >> network >> place.port;
  if (network == network_of_process()) return {"127.0.0.1", place.port};
  std::vector<std::string> addresses;
  for (std::string address; words >> address;) addresses.push_back(address);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
  do {
    for (const std::string& address : addresses)
      if (connect_to({address, place.port})) return {address, place.port};
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  } while (std::chrono::steady_clock::now() < end);
  throw Error(ErrorKind::device, "rank 0 cannot be reached over TCP at any of its addresses: " + text);
}

}  // namespace

RankLines meet_at_own_place(Communicator& ranks, double patience) {
  const bool first = ranks.rank() == 0;
  const int port = first ? free_port() : 0;
  const std::string of_rank_0 = ranks.gather(first ? own_place(port) : "").front();
  const std::string token = ranks.gather(first ? random_token() : "").front();
  const std::vector<std::string> networks = ranks.gather(network_of_process());
  const auto is_here = [&](const std::string& network) { return network == networks.front(); };
  const bool all_here = std::all_of(networks.begin(), networks.end(), is_here);  // then no other machine is let in
  const SocketPlace place = first ? SocketPlace{all_here ? "127.0.0.1" : "0.0.0.0", port}  //
                                  : place_of_rank_0(of_rank_0, patience);
  return meet_ranks({ranks.rank(), ranks.size(), 0, "", place, token}, patience);
}

}  // namespace twiddle
