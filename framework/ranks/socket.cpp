#include "framework/ranks/socket.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "framework/error.h"

namespace twiddle {

namespace {

constexpr int transfer_looks_ms = 20;  // how often a transfer checks whether to continue
constexpr int connect_ms = 3000;       // an unreachable address may not answer at all

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses look_up(const char* host, int port, int family, int flags) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = family;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  const int failed = getaddrinfo(host, std::to_string(port).c_str(), &wanted, &found);
  return {failed == 0 ? found : nullptr, freeaddrinfo};
}

void set(const Socket& socket, int level, int option, int value) {
  setsockopt(socket.handle(), level, option, &value, sizeof value);
}

Socket new_socket(int family) {
  return Socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

// Makes a socket send small messages at once and never block: poll() waits for it.
Socket without_blocking(Socket socket) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  fcntl(socket.handle(), F_SETFL, fcntl(socket.handle(), F_GETFL) | O_NONBLOCK);
  return socket;
}

bool wait_for(const Socket& socket, short events, int milliseconds) {
  pollfd wanted{socket.handle(), events, 0};
  return poll(&wanted, 1, milliseconds) > 0;
}

int milliseconds_of(double seconds) {
  return std::max(static_cast<int>(1000 * seconds), 0);
}

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// For a non-blocking socket.
bool connect_in_time(const Socket& socket, const addrinfo& address) {
  if (::connect(socket.handle(), address.ai_addr, address.ai_addrlen) == 0) return true;
  int error = 0;
  socklen_t size = sizeof error;
  return errno == EINPROGRESS && wait_for(socket, POLLOUT, connect_ms) &&
         getsockopt(socket.handle(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

// Connecting to an ephemeral port without a listener may connect a socket to itself, if the system assigns it this
// port.
bool is_connected_to_itself(const Socket& socket) {
  sockaddr_storage own{}, other{};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  return getsockname(socket.handle(), reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         getpeername(socket.handle(), reinterpret_cast<sockaddr*>(&other), &other_size) == 0 &&
         own_size == other_size && std::memcmp(&own, &other, own_size) == 0;
}

// `move` sends or receives part of the remaining bytes, like send() and recv().
template <class Move>
Transfer move_all(const Socket& socket, short events, std::size_t count, const std::function<bool()>& goes_on,
                  const Move& move) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t moved = move(done);
    if (moved > 0)
      done += static_cast<std::size_t>(moved);
    else if (moved == 0 || !would_block())
      return Transfer::closed;
    else if (!goes_on())
      return Transfer::given_up;
    else
      wait_for(socket, events, transfer_looks_ms);
  }
  return Transfer::done;
}

// Returns addresses of `family`; an IPv6 socket accepts IPv4 connections, too.
Addresses addresses_to_listen_at(const SocketPlace& place, int family) {
  const bool local = place.host == "localhost" || place.host == "127.0.0.1" || place.host == "::1";
  return local ? look_up(place.host.c_str(), place.port, family, 0) : look_up(nullptr, place.port, family, AI_PASSIVE);
}

}  // namespace

Socket::~Socket() {
  if (open()) ::close(handle_);
}

std::string to_string(const SocketPlace& place) {
  return join(place.host, ":", place.port);
}

Socket listen_at(const SocketPlace& place) {
  int reason = EADDRNOTAVAIL;
  for (const int family : {AF_INET6, AF_INET}) {
    const Addresses addresses = addresses_to_listen_at(place, family);
    if (!addresses) continue;
    Socket listener = new_socket(family);
    if (!listener.open()) continue;
    set(listener, SOL_SOCKET, SO_REUSEADDR, 1);  // the port of a training that has just exited is free
    if (family == AF_INET6) set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(listener.handle(), addresses->ai_addr, addresses->ai_addrlen) == 0 && listen(listener.handle(), 128) == 0)
      return without_blocking(std::move(listener));  // a client may disconnect before accept()
    reason = errno;
    if (reason == EADDRINUSE) break;
  }
  throw Error(ErrorKind::device, join("port ", place.port, " of this machine, where rank 0 waits for the other ranks, ",
                                      reason == EADDRINUSE ? "is in use" : "cannot be listened at", ": ",
                                      std::strerror(reason), "\n  Another training may use it: give each training a ",
                                      "different MASTER_PORT (rank 0 listens at the port after it)"));
}

std::optional<Socket> accept_within(const Socket& listener, double seconds) {
  if (!wait_for(listener, POLLIN, milliseconds_of(seconds))) return std::nullopt;
  Socket socket(accept4(listener.handle(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.open() && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
    throw Error(ErrorKind::device, join("cannot accept a rank's connection: ", std::strerror(errno)));
  if (!socket.open()) return std::nullopt;  // the client has disconnected
  return without_blocking(std::move(socket));
}

std::string address_of_peer(const Socket& socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  char text[NI_MAXHOST] = "";
  if (getpeername(socket.handle(), reinterpret_cast<sockaddr*>(&peer), &size) != 0) return "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&peer), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

std::vector<bool> readable_within(const std::vector<const Socket*>& sockets, double seconds) {
  std::vector<pollfd> wanted;
  for (const Socket* socket : sockets) wanted.push_back({socket->handle(), POLLIN, 0});
  poll(wanted.data(), wanted.size(), milliseconds_of(seconds));
  std::vector<bool> readable;
  for (const pollfd& each : wanted) readable.push_back(each.revents != 0);
  return readable;
}

bool receive_available(const Socket& socket, std::string& bytes, std::size_t most) {
  const std::size_t before = bytes.size();
  bytes.resize(before + most);
  const ssize_t count = ::recv(socket.handle(), bytes.data() + before, most, 0);
  const bool nothing_yet = count < 0 && would_block();
  bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return count > 0 || nothing_yet;
}

std::optional<Socket> connect_to(const SocketPlace& place) {
  const Addresses addresses = look_up(place.host.c_str(), place.port, AF_UNSPEC, 0);
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    Socket socket = new_socket(each->ai_family);
    if (!socket.open()) continue;
    socket = without_blocking(std::move(socket));
    if (connect_in_time(socket, *each) && !is_connected_to_itself(socket)) return socket;
  }
  return std::nullopt;
}

Transfer send_bytes(const Socket& socket, const void* bytes, std::size_t count, const std::function<bool()>& goes_on) {
  return move_all(socket, POLLOUT, count, goes_on, [&](std::size_t done) {
    return ::send(socket.handle(), static_cast<const char*>(bytes) + done, count - done, MSG_NOSIGNAL);
  });
}

Transfer receive_bytes(const Socket& socket, void* bytes, std::size_t count, const std::function<bool()>& goes_on) {
  return move_all(socket, POLLIN, count, goes_on, [&](std::size_t done) {
    return ::recv(socket.handle(), static_cast<char*>(bytes) + done, count - done, 0);
  });
}

std::vector<std::string> addresses_of_machine() {
  std::vector<std::string> texts;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return texts;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> addresses(first, freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) continue;
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST] = "";
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(each->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) texts.emplace_back(text);
  }
  return texts;
}

int free_port() {
  const Socket listener = listen_at({"127.0.0.1", 0});
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(listener.handle(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace twiddle
