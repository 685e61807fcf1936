// checkpoints.cpp: how a checkpoint is written, and how old ones are removed.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "src/base/atomic_file.h"
#include "src/base/failpoint.h"
#include "src/base/files.h"
#include "src/base/log.h"
#include "src/base/whole_number.h"
#include "src/checkpoint/manifest.h"
#include "src/checkpoint/safetensors_header.h"
#include "wd/checkpoint.h"
#include "wd/error.h"

namespace wd {

namespace {

namespace fs = std::filesystem;
using checkpoint::Manifest;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kConfig = "config.yaml";
constexpr const char* kEnding = ".safetensors";
constexpr const char* kStage = ".stage-";  // half written or half removed: safe to delete
constexpr const char* kAside = ".aside-";  // set aside on resuming, for users to inspect
constexpr std::uintmax_t kLongestManifest = 1 << 20;

std::string name_of(std::int64_t iteration) {
  std::string digits = std::to_string(iteration);
  return std::string(digits.size() < 8 ? 8 - digits.size() : 0, '0') + digits;
}

// Returns the iteration in the name of a checkpoint, or nothing if the name does not have that form.
std::optional<std::int64_t> iteration_of(const std::string& name) {
  const auto iteration = whole_number<std::int64_t>(name);
  return iteration && name == name_of(*iteration) ? iteration : std::nullopt;
}

// Creates the folder with the permissions that the umask leaves, as for weights and metrics.
void make_folder(const fs::path& folder) {
  constexpr mode_t kMode = 0777;
  if (::mkdir(folder.c_str(), kMode) != 0) throw_file_error(folder, "make it");
}

// Numbers of optimizer steps are exact as doubles, as all counts are.
void check_counts(const fs::path& path, const std::vector<NamedTensor>& tensors) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.scalar_type() != at::kLong) continue;
    const auto count = named.tensor.item<std::int64_t>();
    WD_CHECK(count >= 0 && count < kMost, path.string(), ": tensor ", named.name,
             " holds a number that is not a count");
  }
}

// Renames a checkpoint before it removes the files, so that it no longer counts as a checkpoint. A save of
// the same iteration uses a different name.
void remove_checkpoint(const fs::path& folder) {
  const fs::path stage = folder.parent_path() / concat(kStage, "old-", folder.filename().string());
  fs::remove_all(stage);
  rename_file(folder, stage);
  failpoint("checkpoint.removing");
  fs::remove_all(stage);
}

// Renames a path that has the name of a checkpoint to be written, or a checkpoint that is newer than the one
// that training resumes from. Returns the new path.
fs::path set_aside(const fs::path& path) {
  const fs::path aside = path.parent_path() / (kAside + path.filename().string());
  fs::remove_all(aside);
  rename_file(path, aside);
  return aside;
}

// Throws std::runtime_error unless this is the file that the manifest describes.
void check_file(const fs::path& file, const FileDigest& digest) {
  std::error_code error;
  WD_CHECK(fs::is_regular_file(fs::symlink_status(file, error)), file.string(), ": there is no such file");
  const std::uint64_t bytes = fs::file_size(file);
  WD_CHECK(bytes == digest.bytes, file.string(), ": has ", bytes, " bytes where its manifest says ",
           digest.bytes);
  WD_CHECK(checkpoint::digest_of(file) == digest, file.string(), ": is damaged: its checksum is wrong");
}

// What is in trained/ has the forms of weights/.
SnapshotForms with_trained(const Checkpoint& checkpoint, SnapshotForms forms) {
  const SnapshotForms given = forms;
  for (const auto& [file, tensors] : given) {
    if (!file.starts_with(kWeightsFolder)) continue;
    const std::string trained = kTrainedFolder + file.substr(std::strlen(kWeightsFolder));
    if (checkpoint.files.contains(trained + kEnding)) forms[trained] = tensors;
  }
  return forms;
}

}  // namespace

std::uint64_t Snapshot::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [file, tensors] : files) {
    for (const NamedTensor& named : tensors) sum += named.tensor.nbytes();
  }
  return sum;
}

// Also returns true if the folder cannot be examined (another user's folder, for example): opening it reports
// the reason.
bool is_checkpoint(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kManifest, error) || error == std::errc::permission_denied ||
         fs::exists(folder / (std::string("replicas") + kEnding), error);
}

Checkpoint open_checkpoint(const fs::path& folder, CheckpointParts parts) {
  const fs::path path = folder / kManifest;
  std::error_code error;
  const bool regular = fs::is_regular_file(path, error);
  const bool is_there = regular || (!error && fs::exists(path, error));
  WD_CHECK(!error || error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory,
           path.string(), ": cannot look at it: ", error.message());
  WD_CHECK(regular, path.string(), is_there ? ": is not a regular file" : ": there is no such file");
  WD_CHECK(fs::file_size(path) <= kLongestManifest, path.string(), ": is longer than any manifest");
  Manifest manifest;
  try {
    const File file(path, O_RDONLY);
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read_at(0, std::as_writable_bytes(std::span(text.data(), text.size())));
    manifest = checkpoint::decode(text);
  } catch (const std::runtime_error& cause) {
    throw std::runtime_error(concat(path.string(), ": ", cause.what()));
  }
  std::vector<std::string> dropped, damaged;
  for (const auto& [name, digest] : manifest.files) {
    if (parts == CheckpointParts::kWeights && name != kConfig && !name.starts_with(kWeightsFolder)) continue;
    const fs::path file = folder / name;
    if (!name.starts_with(kReplayFolder)) {
      check_file(file, digest);
      continue;
    }
    if (fs::exists(fs::symlink_status(file, error))) {
      try {
        WD_CHECK(fs::is_directory(fs::symlink_status(file.parent_path())), file.parent_path().string(),
                 ": is a link");
        check_file(file, digest);
        continue;
      } catch (const std::runtime_error& cause) {
        damaged.push_back(cause.what());
      }
    }
    dropped.push_back(name);
  }
  for (const std::string& name : dropped) manifest.files.erase(name);
  return {folder, manifest.info, manifest.files, damaged};
}

Snapshot read_snapshot(const Checkpoint& checkpoint, const SnapshotForms& given) {
  const SnapshotForms forms = with_trained(checkpoint, given);
  Snapshot snapshot;
  snapshot.counts = checkpoint.info.counts;
  snapshot.wall_s = checkpoint.info.wall_s;
  snapshot.products = checkpoint.info.products;
  for (const auto& [name, digest] : checkpoint.files) {
    WD_CHECK(
        name == kConfig || name.starts_with(kReplayFolder) || name.starts_with(kOpponentsFolder) ||
            (name.ends_with(kEnding) && forms.contains(name.substr(0, name.size() - std::strlen(kEnding)))),
        (checkpoint.folder / name).string(), ": does not belong to this training");
  }
  for (const auto& [file, tensors] : forms) {
    const std::string name = file + kEnding;
    WD_CHECK(checkpoint.files.contains(name), checkpoint.folder.string(), ": has no file ", name);
    snapshot.files[file] = read_tensors(checkpoint.folder / name, tensors);
    if (file.starts_with("optimizer/")) check_counts(checkpoint.folder / name, snapshot.files[file]);
  }
  return snapshot;
}

std::vector<fs::path> list_checkpoints(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (iteration_of(entry.path().filename().string()) && entry.is_directory() && !entry.is_symlink())
      found.push_back(entry.path());
  }
  std::ranges::sort(found, std::greater(),
                    [](const fs::path& path) { return iteration_of(path.filename().string()); });
  return found;
}

void check_name_of(const Checkpoint& checkpoint) {
  const std::string name = name_of(checkpoint.info.counts.iteration);
  WD_CHECK(checkpoint.name() == name, checkpoint.folder.string(), ": holds iteration ",
           checkpoint.info.counts.iteration, " and must be named ", name, ": rename it");
}

Checkpoint newest_checkpoint(const fs::path& run) {
  const std::vector<fs::path> all = list_checkpoints(run / "checkpoints");
  if (all.empty()) throw UsageError(concat(run.string(), ": there is no checkpoint to go on from"));
  for (const fs::path& folder : all) {
    try {
      Checkpoint checkpoint = open_checkpoint(folder);
      check_name_of(checkpoint);
      return checkpoint;
    } catch (const std::runtime_error& error) {
      logging::warn(concat("checkpoint ", folder.filename().string(), " is left out: ", error.what()));
    }
  }
  throw std::runtime_error(
      concat(run.string(), ": none of its ", all.size(), " checkpoints can be read; nothing was changed"));
}

Checkpoints::Checkpoints(fs::path folder, int keep_last, bool one_replay)
    : folder_(std::move(folder)), keep_last_(keep_last), one_replay_(one_replay) {
  make_own_folder(folder_);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (entry.path().filename().string().starts_with(kStage)) fs::remove_all(entry.path());
  }
}

Checkpoints::~Checkpoints() { wait(); }

bool Checkpoints::wait() { return !under_way_.valid() || under_way_.get(); }

fs::path Checkpoints::room(std::int64_t iteration) const {
  return folder_ / concat(kStage, "room-", name_of(iteration));
}

bool Checkpoints::holds(std::int64_t iteration) {
  wait();
  return stands(iteration);
}

bool Checkpoints::stands(std::int64_t iteration) const {
  std::error_code unknown;
  return written_ == iteration && fs::is_directory(folder_ / name_of(iteration), unknown);
}

bool Checkpoints::save(Snapshot snapshot, CheckpointInfo info, std::string config,
                       std::vector<fs::path> growing) {
  const bool good = wait();
  if (std::error_code unknown; !fs::is_directory(folder_, unknown)) forget();
  if (stands(snapshot.counts.iteration)) {
    fs::remove_all(room(snapshot.counts.iteration));
    return good;
  }
  const auto before = std::pair(best_return_, best_);
  consider(name_of(snapshot.counts.iteration), info.mean_return);
  info.counts = snapshot.counts;
  info.wall_s = snapshot.wall_s;
  info.best_return = best_return_;
  info.best = best_;
  info.judged = judged_;
  under_way_ =
      std::async(std::launch::async, [this, snapshot = std::move(snapshot), info = std::move(info),
                                      config = std::move(config), growing = std::move(growing), before] {
        try {
          write(snapshot, info, config, growing);
          return true;
        } catch (const std::exception& error) {
          std::tie(best_return_, best_) = before;
          std::error_code left;  // on a full disk, the space that it took is needed
          fs::remove_all(folder_ / (kStage + name_of(snapshot.counts.iteration)), left);
          fs::remove_all(room(snapshot.counts.iteration), left);
          logging::error(concat("checkpoint ", name_of(snapshot.counts.iteration), ": ", error.what(),
                                ": older checkpoints are unchanged"));
          return false;
        }
      });
  return good;
}

// While no return is known, the newest checkpoint is the best. Of equal returns, the newer one counts.
void Checkpoints::consider(const std::string& name, double mean_return) {
  const bool known = std::isfinite(mean_return);
  if (!best_return_ || (known && mean_return >= *best_return_)) best_ = name;
  if (known) best_return_ = std::max(best_return_.value_or(mean_return), mean_return);
}

// The folder was deleted or moved: the run continues and keeps checkpoints in a new one, with a new best one.
void Checkpoints::forget() {
  logging::warn(concat(folder_.string(), " was deleted while training (or moved); it is made again"));
  best_return_.reset();
  judged_ = {};
  best_.clear();
  written_.reset();
}

void Checkpoints::write(const Snapshot& snapshot, const CheckpointInfo& info, const std::string& config,
                        const std::vector<fs::path>& growing) {
  const std::string name = name_of(snapshot.counts.iteration);
  const fs::path stage = folder_ / (kStage + name), place = folder_ / name;
  fs::create_directories(folder_);
  fs::remove_all(stage);
  make_folder(stage);
  failpoint("checkpoint.begun");
  Manifest manifest{info, {}};
  std::set<fs::path> folders = {stage};
  std::vector<File> files;  // brought to disk before the checkpoint gets its name
  for (const fs::path& path : growing) files.emplace_back(path, O_RDONLY, FileKind::kOwn);
  // `put` makes the file at the path that it gets.
  const auto add = [&](const std::string& file, const auto& put) {
    const fs::path path = stage / (file + kEnding);
    if (folders.insert(path.parent_path()).second) make_folder(path.parent_path());
    put(path);
    files.emplace_back(path, O_RDONLY);
    manifest.files[file + kEnding] = checkpoint::digest_of(path);
    failpoint("checkpoint.file");
  };
  for (const auto& [file, tensors] : snapshot.files) {
    const auto metadata = snapshot.metadata.find(file);
    add(file, [&](const fs::path& path) {
      write_safetensors(path, views_of(tensors),
                        metadata == snapshot.metadata.end() ? TensorMetadata() : metadata->second,
                        Durability::kReplace);
    });
  }
  for (const auto& [file, from] : snapshot.written)
    add(file, [&](const fs::path& path) { rename_file(from, path); });
  fs::remove_all(room(snapshot.counts.iteration));
  write_file_atomically(stage / kConfig, config, Durability::kReplace);
  manifest.files[kConfig] = checkpoint::digest_of(stage / kConfig);
  write_file_atomically(stage / kManifest, checkpoint::encode(manifest), Durability::kReplace);
  failpoint("checkpoint.manifest");
  for (const char* name_of_file : {kConfig, kManifest}) files.emplace_back(stage / name_of_file, O_RDONLY);
  for (const fs::path& path : folders) files.emplace_back(path, O_RDONLY | O_DIRECTORY);
  sync_files(files);
  failpoint("checkpoint.staged");
  if (fs::exists(fs::symlink_status(place)))
    logging::warn(concat(place.string(), " was there already: set aside as ", set_aside(place).string()));
  rename_file(stage, place);
  failpoint("checkpoint.renamed");
  sync_folder(folder_);
  written_ = snapshot.counts.iteration;
  failpoint("checkpoint.complete");
  point("latest", name);
  if (!manifest.info.best.empty()) point("best", manifest.info.best);
  sync_folder(folder_);
  failpoint("checkpoint.linked");
  prune();
  if (one_replay_) drop_replays();
}

// The newest was just written.
void Checkpoints::drop_replays() const {
  const std::vector<fs::path> all = list_checkpoints(folder_);
  for (std::size_t k = 1; k < all.size(); ++k) fs::remove_all(all[k] / "replay");
}

// Replaces a link by renaming, as files are replaced. The caller brings the folder to disk.
void Checkpoints::point(const char* link, const std::string& name) const {
  if (!fs::exists(folder_ / name)) return;
  const fs::path stage = folder_ / concat(kStage, link);
  fs::remove(stage);
  fs::create_symlink(name, stage);
  rename_file(stage, folder_ / link);
}

// The newest was just written, so it is among those kept.
void Checkpoints::prune() const {
  const std::vector<fs::path> all = list_checkpoints(folder_);
  for (std::size_t k = static_cast<std::size_t>(keep_last_); k < all.size(); ++k) {
    if (all[k].filename() != best_) remove_checkpoint(all[k]);
  }
}

void Checkpoints::continue_from(const Checkpoint& checkpoint) {
  best_return_ = checkpoint.info.best_return;
  best_ = checkpoint.info.best;
  judged_ = checkpoint.info.judged;
  written_ = checkpoint.info.counts.iteration;
  for (const fs::path& other : list_checkpoints(folder_)) {
    if (iteration_of(other.filename().string()) <= written_) continue;
    logging::warn(concat("checkpoint ", other.filename().string(),
                         " is newer than the one that training goes on from: set aside as ",
                         set_aside(other).string()));
  }
  point("latest", checkpoint.name());
  if (!best_.empty()) point("best", best_);
  sync_folder(folder_);
}

}  // namespace wd
