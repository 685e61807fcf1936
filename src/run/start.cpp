// start.cpp: gathers the facts of a start.
#include "src/run/start.h"

#include <fcntl.h>
#include <torch/version.h>
#include <unistd.h>

#include <array>

#include "src/base/date.h"
#include "src/base/host.h"
#include "src/base/json.h"
#include "src/base/version.h"
#include "src/device/device.h"
#include "src/metrics/last_lines.h"

namespace wd::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStarts = "starts.jsonl";
constexpr std::size_t kMaxStarts = 10'000;

constexpr std::array kVariables{"CUDA_VISIBLE_DEVICES", "MKL_CBWR", "OMP_NUM_THREADS", "MASTER_ADDR",
                                "MASTER_PORT",          "RANK",     "WORLD_SIZE",      "LOCAL_RANK"};
constexpr std::array kPrefixes{"NCCL_", "SLURM_JOB_", "CUBLAS_"};
// Those of which the bits of a training on a CPU may depend.
constexpr std::array kDecisive{"version", "commit", "libtorch", "processor", "gpus", "workers"};

Json environment() {
  Json found = Json::object();
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool listed = std::ranges::find(kVariables, name) != kVariables.end();
    const bool matches =
        std::ranges::any_of(kPrefixes, [&](std::string_view one) { return name.starts_with(one); });
    if ((listed || matches) && name.size() < text.size())
      found[std::string(name)] = std::string(text.substr(name.size() + 1));
  }
  return found;
}

}  // namespace

Json describe_start(const std::vector<std::string>& command, int workers) {
  Json gpus = Json::array();
  if (why_no_gpu().empty())
    for (int g = 0; g < count_gpus(); ++g) gpus.push_back(gpu_name(g));
  std::error_code unknown;
  return {{"time", date("%Y-%m-%dT%H:%M:%SZ", ::gmtime_r)},
          {"host", host_name()},
          {"folder", std::filesystem::current_path(unknown).string()},
          {"command", command},
          {"workers", workers},
          {"version", WD_VERSION},
          {"commit", kCommit},
          {"libtorch", TORCH_VERSION},
          {"processor", cpu_model()},
          {"gpus", gpus},
          {"environment", environment()}};
}

StartsFile::StartsFile(const std::filesystem::path& run)
    : file_(run / kStarts, O_RDWR | O_CREAT | O_APPEND, FileKind::kOwn) {}

void StartsFile::append(std::string_view start) {
  char last = '\n';
  if (const std::uint64_t size = file_.size(); size > 0)
    file_.read_at(size - 1, std::as_writable_bytes(std::span(&last, 1)));
  file_.write(bytes_of(concat(last == '\n' ? "" : "\n", start, "\n")));
}

std::vector<Json> read_starts(const std::filesystem::path& run) {
  std::vector<Json> starts;
  for (const std::string& line : last_lines(run / kStarts, kMaxStarts)) {
    Json start = parse_json<Json>(line);
    if (start.is_object()) starts.push_back(std::move(start));
  }
  return starts;
}

std::vector<std::string> differences(const Json& then, const Json& now) {
  std::vector<std::string> lines;
  for (const char* const name : kDecisive) {
    const Json before = then.value(name, Json()), after = now.value(name, Json());
    if (before != after) lines.push_back(concat(name, ": then ", dump(before), ", now ", dump(after)));
  }
  return lines;
}

}  // namespace wd::run
