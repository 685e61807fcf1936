// record.cpp: reads config.yaml, finds runs, and reads what a checkpoint says of itself.
#include "src/run_report/record.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "src/base/files.h"
#include "src/base/join.h"
#include "src/base/name.h"
#include "src/base/printable.h"
#include "src/checkpoint/manifest.h"
#include "src/config/document.h"

namespace wd::run_report {
namespace {

namespace fs = std::filesystem;

std::string text_of(const config::Node& node) {
  if (node.kind != config::Node::Kind::kList) return without_controls(node.text);
  std::vector<std::string> items;
  for (const config::Node& item : node.items) items.push_back(text_of(item));
  return "[" + join(items) + "]";
}

void flatten(const config::Node& node, const std::string& path,
             std::map<std::string, std::string>& settings) {
  if (!node.is_map()) {
    settings[path] = text_of(node);
    return;
  }
  for (const config::Node::Entry& entry : node.entries)
    flatten(entry.value, path.empty() ? entry.key : path + '.' + entry.key, settings);
}

std::map<std::string, std::string> read_settings(const fs::path& folder) {
  std::map<std::string, std::string> settings;
  const std::string text = read_regular(folder / "config.yaml", config::kMaxBytes).value_or("");
  config::Problems problems;
  config::Node root;
  if (config::parse_document(text, "config.yaml", problems, root) && root.is_map())
    flatten(root, "", settings);
  return settings;
}

void gather(const fs::path& folder, std::vector<fs::path>& runs, std::vector<fs::path>* unreadable) {
  if (is_run(folder)) {
    runs.push_back(folder);
    return;
  }
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (!hidden && entry->is_directory(gone) && !entry->is_symlink(gone))
      gather(entry->path(), runs, unreadable);
  }
  if (error && unreadable != nullptr) unreadable->push_back(folder);
}

}  // namespace

std::string RunRecord::setting(const std::string& path) const {
  const auto found = settings.find(path);
  return found == settings.end() ? "" : found->second;
}

std::string RunRecord::environment() const {
  const std::string env = state.text("env");
  return kept_name(env.empty() ? setting("name") : env);
}

std::string RunRecord::algorithms() const {
  std::set<std::string> names;
  for (const auto& [path, value] : settings)
    if (path.starts_with("policy.") && path.ends_with(".algorithm")) names.insert(value);
  return join({names.begin(), names.end()});
}

std::vector<std::string> RunRecord::policies() const {
  std::vector<std::string> names;
  const auto returns = state.summary.find("mean_return");
  if (returns == state.summary.end() || !returns->is_object()) return names;
  for (const auto& [name, value] : returns->items()) names.push_back(without_controls(name));
  return names;
}

double RunRecord::last_return(const std::string& policy) const {
  return number_in(state.summary.value("mean_return", nlohmann::ordered_json()), policy);
}

bool is_run(const fs::path& folder) {
  std::error_code unreadable;
  return fs::is_regular_file(folder / "summary.json", unreadable) ||
         fs::is_regular_file(folder / "metrics.jsonl", unreadable);
}

std::vector<fs::path> find_runs(const fs::path& folder, std::vector<fs::path>* unreadable) {
  std::vector<fs::path> runs;
  gather(folder, runs, unreadable);
  std::ranges::sort(runs);
  return runs;
}

RunRecord read_record(const fs::path& folder) { return {folder, read_state(folder), read_settings(folder)}; }

std::optional<CheckpointInfo> newest_checkpoint_info(const fs::path& run) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 24;
  const std::optional<std::string> text =
      read_regular(run / "checkpoints" / "latest" / "manifest.json", kMaxBytes);
  if (!text) return {};
  try {
    return checkpoint::decode(*text).info;
  } catch (const std::runtime_error&) {
    return {};  // damaged: `--resume` says how
  }
}

std::uint64_t bytes_on_disk(const fs::path& folder) {
  constexpr std::uint64_t kBlock = 512;  // unit of st_blocks
  std::uint64_t blocks = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    struct stat status{};
    if (::lstat(entry->path().c_str(), &status) == 0) blocks += static_cast<std::uint64_t>(status.st_blocks);
  }
  return blocks * kBlock;
}

}  // namespace wd::run_report
