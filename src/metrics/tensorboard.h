// tensorboard.h: an event file that TensorBoard reads, written without protobuf.
#pragma once

#include "src/base/files.h"
#include "wd/metrics.h"

namespace wd {

// CRC-32C (Castagnoli). 0xE3069283 for "123456789".
std::uint32_t crc32c(std::string_view bytes);

inline constexpr std::string_view kEventFilePrefix = "events.out.tfevents.";

class EventFile {
 public:
  // Makes events.out.tfevents.TIME.HOST.PID.COUNT in the folder. Throws std::runtime_error.
  explicit EventFile(const std::filesystem::path& folder);
  // Goes on with a file, cut back to `size`; makes it where it is gone. Throws std::runtime_error.
  EventFile(const std::filesystem::path& path, std::uint64_t size);

  std::string name() const { return file_.path().filename().string(); }
  std::uint64_t size() const { return size_; }

  // One point for each finite value, at step env_steps. Throws std::runtime_error when the disk refuses; what
  // was written of the record is taken back.
  void append(const MetricsRow& row);

 private:
  void append_version();
  void append_record(std::string_view event);

  File file_;
  std::uint64_t size_ = 0;
};

}  // namespace wd
