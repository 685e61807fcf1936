// cache.cpp: one file per entry: {"key":"TEXT","report":"TEXT","xxh3":"0123456789abcdef"}. The checksum is
// that of the report.
#include "src/autoscale/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/hex.h"
#include "src/base/home_folder.h"
#include "src/base/json.h"
#include "wd/error.h"

namespace wd::scaling {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;  // per entry

// Throws if the file is not one that this program, run by this user, would have written.
std::string read_own(const fs::path& path) {
  const File file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  WD_CHECK(file.is_regular(), "is not a regular file");
  struct stat status{};
  WD_CHECK(::lstat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid(), "belongs to another user");
  WD_CHECK(file.size() <= kMaxBytes, "is too large");
  std::string text(file.size(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

Report checked_report(const std::string& text, const std::string& key) {
  const Json json = parse_json<Json>(text);
  WD_CHECK(json.is_object(), "is damaged: it is no JSON object");
  WD_CHECK(json.contains("key") && json["key"] == key, "is of another key");
  WD_CHECK(json.contains("report") && json["report"].is_string(), "holds no report");
  const auto& report = json["report"].get_ref<const std::string&>();
  WD_CHECK(json.contains("xxh3") && json["xxh3"] == hash_of(report), "is damaged: its checksum is wrong");
  return parse_report(report);
}

// The key does not contain what changes from day to day, such as the free memory.
void check_fit(const Report& report, int num_workers, const Limits& limits) {
  const SearchResult& result = report.result;
  WD_CHECK(result.status == Status::kChosen, "holds a search that chose nothing");
  const Probe& chosen = result.chosen;
  WD_CHECK(chosen.num_envs % num_workers == 0, "has ", chosen.num_envs, " replicas for ", num_workers,
           " workers");
  WD_CHECK(chosen.num_envs <= limits.max_envs && chosen.batch() <= limits.max_batch &&
               chosen.batch() >= limits.min_batch,
           "is beyond the limits of autoscale");
  WD_CHECK(result.bytes <= limits.memory_bytes, "needs ", result.bytes,
           " bytes of memory, of which there are ", limits.memory_bytes, " now");
}

}  // namespace

fs::path cache_folder() {
  const fs::path folder = home_folder("XDG_CACHE_HOME", ".cache");
  return folder.empty() ? folder : folder / "wd" / "autoscale";
}

fs::path entry_of(const fs::path& folder, const std::string& key) {
  return folder / (hash_of(key) + ".json");
}

Cached read_cache(const fs::path& folder, const std::string& key, int num_workers, const Limits& limits) {
  const fs::path path = entry_of(folder, key);
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return {};
  try {
    const Report report = checked_report(read_own(path), key);
    check_fit(report, num_workers, limits);
    return {report, ""};
  } catch (const std::exception& cause) {
    return {{}, concat(path.string(), ": ignored: ", cause.what())};
  }
}

void write_cache(const fs::path& folder, const std::string& key, const Report& report) {
  std::error_code error;
  fs::create_directories(folder, error);
  WD_CHECK(!error, folder.string(), ": cannot make it: ", error.message());
  const std::string text = report_json(report);
  // Two programs that write the same entry at once may leave a mixture. The checksum detects it.
  write_file_atomically(entry_of(folder, key),
                        dump(Json{{"key", key}, {"report", text}, {"xxh3", hash_of(text)}}) + '\n',
                        Durability::kReplace);
}

}  // namespace wd::scaling
