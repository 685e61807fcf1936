// descriptor.h: owns a file descriptor without a path: a pipe, a socket, shared memory.
#pragma once

#include <unistd.h>

#include <utility>

namespace wd {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) close();
    if (this != &other) number_ = std::exchange(other.number_, -1);
    return *this;
  }

  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

}  // namespace wd
