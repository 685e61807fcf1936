// tensorboard.cpp: the record framing, and the few protobuf fields that scalars need.
// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }
// Summary { repeated Value value = 1; }   Value { string tag = 1; float simple_value = 2; }
#include "src/metrics/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "src/base/host.h"
#include "src/base/name.h"
#include "wd/error.h"

namespace wd {
namespace {

enum class Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kReversedPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

// A checksum of data that contain checksums is weak, so the format stores it rotated and offset.
std::uint32_t masked(std::uint32_t crc) {
  constexpr std::uint32_t kMaskDelta = 0xa282ead8;
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

template <typename Value>
void put_raw(std::string& into, Value value) {
  std::array<char, sizeof(Value)> bytes;
  std::memcpy(bytes.data(), &value, sizeof(Value));
  into.append(bytes.data(), bytes.size());
}

void put_varint(std::string& into, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) into += static_cast<char>((value & 0x7f) | 0x80);
  into += static_cast<char>(value);
}

void put_key(std::string& into, unsigned field, Wire wire) {
  put_varint(into, field << 3 | static_cast<unsigned>(wire));
}

void put_bytes(std::string& into, unsigned field, std::string_view bytes) {
  put_key(into, field, Wire::kBytes);
  put_varint(into, bytes.size());
  into += bytes;
}

std::string begin_event() {
  const std::chrono::duration<double> since_epoch = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_key(event, 1, Wire::kFixed64);
  put_raw(event, since_epoch.count());
  return event;
}

std::string encode_values(const MetricsRow& row) {
  std::string summary;
  for (const auto& [name, value] : row.values()) {
    if (!std::isfinite(value)) continue;
    std::string point;
    put_bytes(point, 1, name);
    put_key(point, 2, Wire::kFixed32);
    put_raw(point, static_cast<float>(value));
    put_bytes(summary, 1, point);
  }
  return summary;
}

// The last number distinguishes files of one process: a run whose folder was deleted may create another in
// the same second.
std::filesystem::path event_path(const std::filesystem::path& folder) {
  static std::atomic<int> made{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string host = host_name();
  return folder / concat(kEventFilePrefix, std::chrono::duration_cast<std::chrono::seconds>(now).count(), '.',
                         is_name(host) ? host : "host", '.', ::getpid(), '.', made.fetch_add(1));
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = make_crc_table();
  std::uint32_t crc = 0xffffffff;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& folder) : GrowingFile(event_path(folder)) {
  append_version();
}

EventFile::EventFile(const std::filesystem::path& path, std::uint64_t bytes) : GrowingFile(path, bytes) {
  if (size() == 0) append_version();
}

void EventFile::append_version() {
  std::string event = begin_event();
  put_bytes(event, 3, "brain.Event:2");
  append_record(event);
}

void EventFile::append(const MetricsRow& row) {
  std::string event = begin_event();
  put_key(event, 2, Wire::kVarint);
  put_varint(event, static_cast<std::uint64_t>(row.counts().env_steps));
  put_bytes(event, 5, encode_values(row));
  append_record(event);
}

void EventFile::append_record(std::string_view event) {
  std::string record;
  put_raw(record, std::uint64_t{event.size()});
  put_raw(record, masked(crc32c(record)));
  record += event;
  put_raw(record, masked(crc32c(event)));
  append_part(record);
}

}  // namespace wd
