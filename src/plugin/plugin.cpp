// plugin.cpp: one program at a time compiles a file; what others see is complete, or not there.
#include "src/plugin/plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "src/base/atomic_file.h"
#include "src/base/binary_path.h"
#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "src/base/hex.h"
#include "src/base/home_folder.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "src/plugin/compiler.h"
#include "wd/detail/plugin.h"
#include "wd/error.h"

namespace wd::plugin {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char *kNames[] = {"cpu", "cuda", "emulated"}, *kList = "list.json";

std::mutex mutex;
std::map<std::string, std::vector<Part>> known;  // what was compiled or loaded, by path

std::string hash_of_file(const fs::path& file) { return hash_of(read_regular(file, kAnySize).value_or("")); }

// What a compiler is known by, without starting it.
std::string identity(const std::string& program) {
  struct stat status{};
  ::stat(program.c_str(), &status);
  return concat(program, ' ', status.st_size, ' ', status.st_mtime, '\n');
}

[[noreturn]] void refuse(const Source& source, const std::string& cause) {
  throw UsageError(concat(source.path.string(), ": cannot be compiled: ", cause,
                          ": free or unlock it, or name another folder with XDG_CACHE_HOME"));
}

fs::path entry_of(const Source& source, const Recipe& recipe, Side side) {
  const fs::path cache = home_folder("XDG_CACHE_HOME", ".cache");
  if (cache.empty())
    refuse(source, "there is no folder for the result: neither HOME nor XDG_CACHE_HOME is a path");
  std::string key = recipe.unit + identity(recipe.command.front()) + identity(recipe.linker);
  for (const std::string& word : recipe.command) key += word + '\n';
  return cache / "wd" / "environments" / concat(kNames[static_cast<int>(side)], '-', hash_of(key));
}

bool is_own(const fs::path& folder) {
  struct stat status{};
  return ::stat(folder.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

// Until it is destroyed, no other program compiles or loads this entry. None if this user cannot write there.
Descriptor lock(const fs::path& entry, std::string& cause) {
  std::error_code error;
  fs::create_directories(entry, error);
  if (fs::exists(entry) && !is_own(entry)) {
    cause = concat(entry.string(), ": belongs to another user");
    return {};
  }
  Descriptor file(::open((entry / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) cause = concat(entry.string(), ": ", error ? error.message() : std::strerror(errno));
  while (file && ::flock(file.get(), LOCK_EX) != 0 && errno == EINTR) continue;
  return file;
}

// The list in an entry, {"module": [name, hash], "files": [[path, hash], ...]}. Null if there is none, or if
// anything has another content than when it was compiled.
Json read_list(const fs::path& entry) try {
  if (!is_own(entry)) return {};
  auto list = parse_json<Json>(read_regular(entry / kList, kAnySize).value_or(""));
  bool same = hash_of_file(entry / list.at("module").at(0)) == list["module"].at(1);
  for (const Json& file : list.at("files")) same = same && hash_of_file(file.at(0)) == file.at(1);
  return same ? list : Json();
} catch (const Json::exception&) {  // damaged
  return {};
}

Json compile_into(const fs::path& entry, const Source& source, const Recipe& recipe, Side side) {
  const Stopwatch watch;
  const fs::path fresh = entry / "fresh.so";
  Json files;
  for (bool changed = true; changed;) {  // until no file was saved meanwhile
    const fs::file_time_type begun = fs::file_time_type::clock::now();
    files = Json::array();
    changed = false;
    for (const std::string& file : compile(source, recipe, entry / "unit.cpp", fresh)) {
      if (fs::path(file).parent_path() == entry) continue;
      files.push_back({file, hash_of_file(file)});
      changed = changed || fs::last_write_time(file) > begun;
    }
  }
  const std::string hash = hash_of_file(fresh),
                    module = concat(source.name, '-', hash, ".so");  // for backtraces
  for (const fs::directory_entry& old : fs::directory_iterator(entry))
    if (old.path().extension() == ".so" && old.path() != fresh) fs::remove(old.path());
  rename_file(fresh, entry / module);
  Json list{{"module", {module, hash}}, {"files", files}};
  write_file_atomically(entry / kList, dump(list), Durability::kReplace);
  constexpr const char* kFor[] = {"", " for the GPU", " for the emulated GPU"};
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f s", watch.seconds());
  logging::info(concat("compiled ", source.path.filename().string(), kFor[static_cast<int>(side)], " in ",
                       seconds.data()));
  return list;
}

struct Module {
  fs::path path;
  std::vector<Part> files;
  void* handle = nullptr;
};

// Compiles it if need be. `loads`: into this process, which keeps it.
Module module_of(const Source& source, Side side, bool loads) {
  const Recipe recipe = recipe_for(source, side);
  const fs::path entry = entry_of(source, recipe, side);
  std::string cause;
  const Descriptor locked = lock(entry, cause);
  Json list = read_list(entry);
  if (list.is_null() && !locked) refuse(source, cause);
  try {
    if (list.is_null()) list = compile_into(entry, source, recipe, side);
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    refuse(source, error.what());
  }
  Module module{entry / list["module"][0], {}};
  for (const Json& file : list["files"]) module.files.push_back({file[0], file[1]});
  if (loads && (module.handle = ::dlopen(module.path.c_str(), RTLD_NOW | RTLD_LOCAL)) == nullptr)
    refuse(source, concat("what was compiled cannot be loaded: ", ::dlerror()));
  return module;
}

const detail::Plugin& plugin_in(const Module& module) {
  const auto entry = reinterpret_cast<const detail::Plugin* (*)()>(::dlsym(module.handle, "wd_plugin"));
  WD_CHECK(entry != nullptr, module.path.string(), ": has no wd_plugin()");
  const detail::Plugin& plugin = *entry();
  for (std::size_t k = 0; k < std::size(detail::kPluginFacts); ++k) {
    const detail::PluginFact& here = detail::kPluginFacts[k];
    const detail::PluginFact there = k < plugin.num_facts ? plugin.facts[k] : detail::PluginFact{"", 0};
    if (!(here == there))
      throw UsageError(concat("the headers in ", include_folder().string(),
                              " are not those of this program: ", here.name, " is ", there.value,
                              " there and ", here.value, " here: install both anew"));
  }
  return plugin;
}

}  // namespace

std::unique_ptr<Environment> make_environment(const std::string& path) {
  const Source source = read_source(path);
  const Module module = module_of(source, Side::kCpu, true);
  const std::string headers = include_folder().string() + '/';
  std::vector<Part> parts;
  for (const Part& file : module.files)
    if (!file.path.starts_with(headers)) parts.push_back(file);
  {
    const std::lock_guard held(mutex);
    known[path] = std::move(parts);
  }
  return with_sides(
      plugin_in(module).make(),
      [source, side = static_cast<const CudaExecutor*>(nullptr)]() mutable {
        if (side == nullptr) side = plugin_in(module_of(source, Side::kCuda, true)).cuda;
        return side;
      },
      [source] {
        const fs::path needed = emulator();
        return fs::exists(needed) ? module_of(source, Side::kEmulated, false).path.string() : needed.string();
      });
}

std::vector<Part> parts_of(const std::string& path) {
  const std::lock_guard held(mutex);
  const auto found = known.find(path);
  return found == known.end() ? std::vector<Part>() : found->second;
}

std::string digest_of(const std::string& path) {
  std::string hashes;
  for (const Part& part : parts_of(path)) hashes += part.hash;
  return hashes.empty() ? "" : hash_of(hashes);
}

void copy_parts(const std::string& path, const fs::path& folder) {
  const std::vector<Part> parts = parts_of(path);
  if (!parts.empty()) make_own_folder(folder);
  for (const Part& part : parts)
    write_file_atomically(folder / fs::path(part.path).filename(),
                          read_regular(part.path, kMaxInput).value_or(""), Durability::kReplace);
}

}  // namespace wd::plugin
