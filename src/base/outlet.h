// outlet.h: writes to a standard stream whose reader may pause, be slow or go away, without stopping the
// program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wd {

// No function except finish() blocks, and none throws. Text that the stream does not accept at once is
// buffered up to a limit. Beyond the limit it is dropped, and a line reports the number of dropped bytes.
class Outlet {
 public:
  // `max_waiting` is the maximum number of buffered bytes.
  Outlet(int descriptor, std::size_t max_waiting);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  // Takes whole lines, except for a live terminal.
  void write(std::string_view text);
  void flush();
  // Waits up to one second for the buffered text to be written.
  void finish();

  bool is_empty() const { return waiting_.empty(); }
  bool is_closed() const { return closed_; }
  // Descriptor to poll for writing, or -1 if nothing is buffered.
  int waits_for() const { return waiting_.empty() ? -1 : target(); }

 private:
  int target() const { return reopened_ >= 0 ? reopened_ : descriptor_; }

  int descriptor_;
  int reopened_ = -1;
  std::size_t max_waiting_;
  bool is_socket_ = false, closed_ = false;
  std::string waiting_;
  std::int64_t left_out_ = 0;  // [bytes] dropped
};

}  // namespace wd
