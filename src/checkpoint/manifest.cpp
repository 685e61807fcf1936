// manifest.cpp: JSON of one fixed form: {"checkpoint":{...},"xxh3":"0123456789abcdef"}, where xxh3 is the
// checksum of {...}.
#include "src/checkpoint/manifest.h"

#include <fcntl.h>
#include <xxhash.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/base/files.h"
#include "src/base/hex.h"
#include "src/base/json.h"
#include "src/base/name.h"
#include "src/base/whole_number.h"
#include "src/metrics/tensorboard.h"
#include "wd/error.h"

namespace wd::checkpoint {
namespace {

using Json = nlohmann::json;                 // for reading: as fast for many keys as for few
using OrderedJson = nlohmann::ordered_json;  // for writing

constexpr std::string_view kHead = "{\"checkpoint\":", kMiddle = ",\"xxh3\":\"", kTail = "\"}\n";
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 53;  // smaller integers are exact in JSON
constexpr std::uint64_t kMaxWorkers = 1'000'000;
constexpr double kMaxSeconds = 1e10;  // 300 years

std::uint64_t from_hex(const std::string& text, const std::string& what) {
  const auto value = whole_number<std::uint64_t>(text, 16);
  WD_CHECK(value && text.size() == kHexDigits, what, " is not a checksum");
  return *value;
}

std::uint64_t xxh3(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

// NaN is written as null.
double number_or_nan(const Json& json) { return json.is_null() ? std::nan("") : json.get<double>(); }

std::uint64_t count(const Json& json, const char* key, std::uint64_t max = kMaxBytes - 1,
                    std::uint64_t min = 0) {
  const Json& value = json.at(key);
  WD_CHECK(
      value.is_number_unsigned() && value.get<std::uint64_t>() >= min && value.get<std::uint64_t>() <= max,
      key, " is not a count");
  return value.get<std::uint64_t>();
}

std::int64_t steps(const Json& json, const char* key) { return static_cast<std::int64_t>(count(json, key)); }

// Returns false for "manifest.json" itself, absolute paths and paths through "..".
bool is_file_of_a_checkpoint(const std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos) return is_name(path) && path != "manifest.json";
  return is_name(path.substr(0, slash)) && is_name(path.substr(slash + 1));
}

void read_info(const Json& json, CheckpointInfo& info) {
  info.counts = {steps(json, "iteration"), steps(json, "env_steps"), steps(json, "agent_steps")};
  info.environment = json.at("environment").get<std::string>();
  info.seed =
      json.at("seed").get_ref<const Json::number_unsigned_t&>();  // throws for any other type of number
  info.config_hash = from_hex(json.at("config_hash").get<std::string>(), "config_hash");
  info.world_size = static_cast<int>(count(json, "world_size", kMaxWorkers, 1));
  info.wall_s = json.at("wall_s").get<double>();
  WD_CHECK(info.wall_s >= 0.0 && info.wall_s <= kMaxSeconds, "wall_s is not a time");
  info.mean_return = number_or_nan(json.at("mean_return"));
  if (!json.at("best_return").is_null()) info.best_return = json.at("best_return").get<double>();
  info.best = json.at("best").get<std::string>();
  WD_CHECK(info.best.empty() || is_name(info.best), "best is not a name");
  info.offsets.metrics_bytes = count(json, "metrics_bytes");
  info.offsets.events_file = json.at("events_file").get<std::string>();
  const std::string& events = info.offsets.events_file;
  WD_CHECK(events.empty() || (is_name(events) && events.starts_with(kEventFilePrefix)),
           "events_file names no event file");
  info.offsets.events_bytes = count(json, "events_bytes");
  if (json.contains("judged")) {
    const Json& judged = json["judged"];
    info.judged = {number_or_nan(judged.at("at")), number_or_nan(judged.at("lowest")),
                   steps(judged, "steps")};
  }
  if (json.contains("products")) info.products = json["products"].get<std::vector<std::string>>();
  if (json.contains("recordings"))
    info.recordings = json["recordings"].get<std::map<std::string, std::string>>();
}

}  // namespace

FileDigest digest_of(const std::filesystem::path& path) {
  const File file(path, O_RDONLY | O_NONBLOCK);
  WD_CHECK(file.is_regular(), path.string(), ": is not a regular file");
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  const std::uint64_t size = file.size();
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kPiece, size)));
  for (std::uint64_t at = 0; at < size; at += kPiece) {
    const std::span<std::byte> part =
        std::span(piece).first(static_cast<std::size_t>(std::min(kPiece, size - at)));
    file.read_at(at, part);
    XXH3_64bits_update(state.get(), part.data(), part.size());
  }
  return {size, XXH3_64bits_digest(state.get())};
}

std::string encode(const Manifest& manifest) {
  const CheckpointInfo& info = manifest.info;
  OrderedJson files = OrderedJson::object();
  for (const auto& [path, digest] : manifest.files)
    files[path] = {{"bytes", digest.bytes}, {"xxh3", hex(digest.xxh3)}};
  const OrderedJson json{
      {"format_version", kCheckpointFormat},
      {"program_version", WD_VERSION},
      {"environment", info.environment},
      {"seed", info.seed},
      {"world_size", info.world_size},
      {"iteration", info.counts.iteration},
      {"env_steps", info.counts.env_steps},
      {"agent_steps", info.counts.agent_steps},
      {"wall_s", info.wall_s},
      {"mean_return", info.mean_return},
      {"best_return", info.best_return ? OrderedJson(*info.best_return) : OrderedJson(nullptr)},
      {"judged", {{"at", info.judged.at}, {"lowest", info.judged.lowest}, {"steps", info.judged.steps}}},
      {"best", info.best},
      {"config_hash", hex(info.config_hash)},
      {"metrics_bytes", info.offsets.metrics_bytes},
      {"events_file", info.offsets.events_file},
      {"events_bytes", info.offsets.events_bytes},
      {"products", info.products},
      {"recordings", info.recordings},
      {"files", files}};
  const std::string text = json.dump();
  return concat(kHead, text, kMiddle, hex(xxh3(text)), kTail);
}

Manifest decode(std::string_view text) {
  const std::size_t around = kHead.size() + kMiddle.size() + kHexDigits + kTail.size();
  WD_CHECK(text.size() > around && text.starts_with(kHead) && text.ends_with(kTail), "is not a manifest");
  const std::string_view body = text.substr(kHead.size(), text.size() - around);
  const std::string_view behind = text.substr(kHead.size() + body.size());
  WD_CHECK(behind.starts_with(kMiddle), "is not a manifest");
  const Json json = parse_json(body);
  // Checked before the checksum, which may be different in an older or newer program.
  const Json none;
  const Json& version = json.contains("format_version") ? json["format_version"] : none;
  if (version.is_number_integer() && version != kCheckpointFormat) {
    throw std::runtime_error(concat("has checkpoint format ", version.dump(),
                                    " where this program reads format ", kCheckpointFormat));
  }
  WD_CHECK(behind.substr(kMiddle.size(), kHexDigits) == hex(xxh3(body)), "is damaged: its checksum is wrong");
  Manifest manifest;
  try {
    WD_CHECK(version == kCheckpointFormat, "names no format_version");
    read_info(json, manifest.info);
    WD_CHECK(json.at("files").is_object(), "files is not a section");
    for (const auto& [path, digest] : json.at("files").items()) {
      WD_CHECK(is_file_of_a_checkpoint(path), "names a file that does not belong to a checkpoint");
      manifest.files[path] = {count(digest, "bytes"), from_hex(digest.at("xxh3").get<std::string>(), path)};
    }
  } catch (const Json::exception& error) {
    throw std::runtime_error(concat("is not a manifest: ", error.what()));
  }
  return manifest;
}

}  // namespace wd::checkpoint
