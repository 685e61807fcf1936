// outlet.h: a standard stream whose reader may pause, be slow or go away without stopping anyone else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wd::run {

// Nothing here throws or waits, except finish(). What the stream does not take at once is kept up to a limit,
// then left out, and a line says how much.
class Outlet {
 public:
  // `max_waiting`: bytes that are kept.
  Outlet(int descriptor, std::size_t max_waiting);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  // Whole lines, but for a live terminal's.
  void write(std::string_view text);
  void flush();
  // Gives what waits a last second.
  void finish();

  bool is_empty() const { return waiting_.empty(); }
  bool is_closed() const { return closed_; }
  // To be polled for writing; -1: nothing waits.
  int waits_for() const { return waiting_.empty() ? -1 : target(); }

 private:
  int target() const { return reopened_ >= 0 ? reopened_ : descriptor_; }

  int descriptor_;
  int reopened_ = -1;
  std::size_t max_waiting_;
  bool is_socket_ = false, closed_ = false;
  std::string waiting_;
  std::int64_t left_out_ = 0;  // [bytes]
};

}  // namespace wd::run
