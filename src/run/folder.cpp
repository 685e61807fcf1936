// folder.cpp: creates a run's folder.
#include "src/run/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include "src/base/date.h"
#include "src/base/files.h"
#include "src/base/name.h"
#include "src/base/printable.h"
#include "src/run/lock.h"
#include "wd/checkpoint.h"
#include "wd/error.h"

namespace wd::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProbe = ".probe";
constexpr std::size_t kProbeBytes = std::size_t{1} << 20;  // a disk with less room than this is full

// Two runs may begin in the same second: the second one gets -2, and so on.
fs::path make_default(const RunOptions& options) {
  const fs::path parent = options.base / folder_name(options.env);
  const std::string suffix = options.suffix.empty() ? std::to_string(options.seed) : options.suffix;
  const std::string name = concat(date("%Y%m%d-%H%M%S", ::localtime_r), '-', suffix);
  fs::create_directories(parent);
  for (int attempt = 1;; ++attempt) {
    const fs::path folder = parent / (attempt == 1 ? name : concat(name, '-', attempt));
    if (fs::create_directory(folder)) return folder;
  }
}

void check_empty(const fs::path& folder) {
  std::string sample;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (const std::string name = entry.path().filename().string(); name != kLockName && name != kProbe)
      sample = name;  // the others may be left by a start that failed
  }
  if (sample.empty()) return;
  throw UsageError(
      concat("run_dir ", folder.string(), " is not empty (it holds ", sample,
             "): go on with it by --resume auto, name a new folder with --run_dir, leave --run_dir out for "
             "runs/ENV/DATE-TIME-SEED, or remove that folder"));
}

// Accepts whatever can be read on a terminal: spaces and letters of any script do no harm, as in the folders
// above.
void check_folder_name(const std::string& name) {
  if (on_one_line(name) == name) return;
  throw UsageError(concat("run_dir: folder name '", on_one_line(name), "' holds a control character"));
}

fs::path make_named(const fs::path& folder) {
  fs::path name = fs::absolute(folder).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();  // "runs/a/" is runs/a
  check_folder_name(name.filename().string());
  if (fs::exists(folder) && !fs::is_directory(folder)) {
    throw UsageError(concat("run_dir ", folder.string(), " is a file: name a new folder"));
  }
  fs::create_directories(folder);
  check_empty(folder);
  return folder;
}

void check_writable(const fs::path& folder) {
  const fs::path probe = folder / kProbe;
  ::unlink(probe.c_str());  // of a start that was killed
  const std::string zeros(kProbeBytes, '\0');
  try {
    File file(probe, O_WRONLY | O_CREAT | O_EXCL);
    file.write(bytes_of(zeros));
    file.sync();
  } catch (...) {
    ::unlink(probe.c_str());
    throw;
  }
  ::unlink(probe.c_str());
}

}  // namespace

fs::path make_folder(const RunOptions& options) {
  if (!is_environment_name(options.env)) check_name("environment", options.env);
  try {
    const fs::path folder = options.run_dir.empty() ? make_default(options) : make_named(options.run_dir);
    check_writable(folder);
    sync_folder(folder.parent_path());  // makes the folder's own name durable
    return folder;
  } catch (const UsageError&) {
    throw;
  } catch (const fs::filesystem_error& error) {
    throw UsageError(concat("the run's folder cannot be made: ", error.path1().string(), ": ",
                            error.code().message(), ": name another with --run_dir"));
  } catch (const std::runtime_error& error) {
    throw UsageError(
        concat("the run's folder cannot be written: ", error.what(), ": name another with --run_dir"));
  }
}

bool is_left_by_start(const fs::path& folder) {
  std::error_code missing;
  const bool has_rows = fs::file_size(folder / "metrics.jsonl", missing) > 0 && !missing;
  const bool has_weights = !fs::is_empty(folder / "weights", missing) && !missing;
  return !look_at_lock(folder).host.empty() && !has_rows && !has_weights &&
         list_checkpoints(folder / "checkpoints").empty();
}

}  // namespace wd::run
