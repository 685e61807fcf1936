// tensorboard.h: writes an event file for TensorBoard, without protobuf.
#pragma once

#include "src/metrics/growing_file.h"
#include "wd/metrics.h"

namespace wd {

// CRC-32C (Castagnoli). 0xE3069283 for "123456789".
std::uint32_t crc32c(std::string_view bytes);

inline constexpr std::string_view kEventFilePrefix = "events.out.tfevents.";

class EventFile : public GrowingFile {
 public:
  // Creates events.out.tfevents.TIME.HOST.PID.COUNT in the folder. Throws std::runtime_error.
  explicit EventFile(const std::filesystem::path& folder);
  // Continues a file, truncated to `bytes`; creates it if it does not exist. Throws std::runtime_error.
  EventFile(const std::filesystem::path& path, std::uint64_t bytes);

  // Writes one point per finite value, at step env_steps.
  void append(const MetricsRow& row);

 private:
  void append_version();
  void append_record(std::string_view event);
};

}  // namespace wd
