#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

// From a name to a new object; filled by an explicit function, one line an entry.
template <class Base, class... Args>
class Registry {
 public:
  using Maker = std::function<std::unique_ptr<Base>(Args...)>;
  explicit Registry(std::string what) : what_(std::move(what)) {}

  template <class T>
  void add(const std::string& name) {
    add(name, [](Args... args) -> std::unique_ptr<Base> { return std::make_unique<T>(args...); });
  }
  void add(const std::string& name, Maker make) {
    require(makers_.emplace(name, std::move(make)).second, what_, " '", name, "' is registered twice");
  }
  bool has(const std::string& name) const { return makers_.count(name) > 0; }
  std::unique_ptr<Base> make(const std::string& name, Args... args) const {
    const auto maker = makers_.find(name);
    if (maker == makers_.end()) throw Error(ErrorKind::config, unknown(name));
    return maker->second(args...);
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, maker] : makers_) all.push_back(name);
    return all;
  }
  std::string unknown(const std::string& name) const { return unknown_name(what_, name, names()); }

 private:
  std::string what_;  // "layer", "optimizer": for the message
  std::map<std::string, Maker> makers_;
};

}  // namespace twiddle
