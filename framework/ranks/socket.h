#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twiddle {

// A TCP connection, or a place where others are waited for; closed when its owner goes.
class Socket {
 public:
  explicit Socket(int handle = -1) : handle_(handle) {}
  ~Socket();
  Socket(Socket&& other) noexcept : handle_(std::exchange(other.handle_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  int handle() const { return handle_; }
  bool open() const { return handle_ >= 0; }

 private:
  int handle_;
};

struct SocketPlace {
  std::string host;
  int port = 0;
};
std::string to_string(const SocketPlace& place);  // "host:29501"

// Waits for others at the place's port: of this machine alone where the host is named as localhost is. Throws an Error
// of kind device where the port cannot be had.
Socket listen_at(const SocketPlace& place);
// Nothing if no connection has come; an Error of kind device if the system allows no more.
std::optional<Socket> accept_within(const Socket& listener, double seconds);
std::string address_of_peer(const Socket& socket);  // without its port; empty: not known
// Whether each has something to read, or has been closed, once one of them has or that time is over.
std::vector<bool> readable_within(const std::vector<const Socket*>& sockets, double seconds);
// Appends what has come so far, up to that many bytes. False: the other end has closed.
bool receive_available(const Socket& socket, std::string& bytes, std::size_t most);
std::optional<Socket> connect_to(const SocketPlace& place);  // one attempt, of a few seconds at most

// Result of a transfer: done, closed by the peer, or given up because `goes_on`, called periodically, returned false.
enum class Transfer { done, closed, given_up };
Transfer send_bytes(const Socket& socket, const void* bytes, std::size_t count, const std::function<bool()>& goes_on);
Transfer receive_bytes(const Socket& socket, void* bytes, std::size_t count, const std::function<bool()>& goes_on);

std::vector<std::string> addresses_of_machine();  // at which others may reach it

int free_port();  // of this machine, at this moment

}  // namespace twiddle
