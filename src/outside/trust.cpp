// trust.cpp: a run that this user began is known by its environment: all that starting it would run is noted,
// and compared to the last byte.
#include "src/outside/trust.h"

#include <algorithm>
#include <array>

#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/hex.h"
#include "src/base/home_folder.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/name.h"
#include "src/base/printable.h"
#include "src/outside/python.h"
#include "wd/error.h"

namespace wd::outside {
namespace {

namespace fs = std::filesystem;

// Empty: this user has no home.
fs::path notes() {
  const fs::path folder = home_folder("XDG_STATE_HOME", ".local/state");
  return folder.empty() ? folder : folder / "wd" / "begun";
}

// Its name, arguments, wrappers and interpreter, and the content of a pickled file.
std::string game_of(const Environment& environment) {
  nlohmann::json game = request_of(environment, "make");
  game["python"] = interpreter_of(environment);
  for (const char* const harmless : {"one_role", "statistics"}) game.erase(harmless);
  constexpr std::string_view kPickle = "pickle:";
  const std::string name(environment.name());
  return dump(game) + '\n' +
         (name.starts_with(kPickle) ? read_regular(name.substr(kPickle.size()), kAnySize).value_or("") : "");
}

fs::path note_of(const std::string& game) { return notes() / hash_of(game); }

bool is_noted(const std::string& game) {
  return !notes().empty() && read_regular(note_of(game), kAnySize) == game;
}

std::string shown(const std::string& text) { return on_one_line(text.substr(0, 1000)); }

std::string not_begun() {
  return concat(", and you have not begun a run with it",
                notes().empty() ? " (as far as is known: neither $XDG_STATE_HOME nor $HOME is set)"
                                : " on this machine",
                ". Look at it, and give --trust if you trust it");
}

}  // namespace

bool is_of_run(const ConfigSources& sources) {
  if (sources.of_run || sources.file.empty()) return sources.of_run;
  constexpr std::array kBeside = {"checkpoints",   "weights",      "manifest.json",
                                  "metrics.jsonl", "summary.json", "starts.jsonl"};
  const fs::path folder = fs::path(sources.file).parent_path();
  std::error_code unknown;
  return std::ranges::any_of(
      kBeside, [&](const char* name) { return fs::exists(fs::symlink_status(folder / name, unknown)); });
}

void require_trust(const ConfigSources& sources, const Environment& environment) {
  if (!is_python_environment(environment.name()) || !sources.of_run || sources.trusted) return;
  const std::string python = interpreter_of(environment);
  const nlohmann::json request = request_of(environment, "make");
  const auto is_given = [&](const char* path) {
    return std::ranges::any_of(sources.overrides, [&](const Override& one) { return one.path == path; });
  };
  // The loader has compared the names.
  if (!sources.env.empty() && (python.empty() || is_given("env.python")) &&
      (request["wrappers"].empty() || is_given("env.wrappers")))
    return;
  const std::string game = game_of(environment), kwargs = request["kwargs"];
  if (is_noted(game)) return;
  throw UsageError(concat(
      shown(sources.file), ": the environment of this run is a program in Python: it would run ",
      shown(std::string(environment.name())), " with the arguments ", shown(kwargs.empty() ? "{}" : kwargs),
      request["wrappers"].empty() ? "" : concat(", wrapped by ", shown(dump(request["wrappers"]))),
      python.empty() ? "" : concat(", by the interpreter ", shown(python)), not_begun()));
}

void require_trust(const ConfigSources& sources, const std::string& source) {
  if (!sources.of_run || sources.trusted || !sources.env.empty()) return;
  fs::path run = fs::absolute(sources.file).lexically_normal().parent_path();
  if (run.parent_path().filename() == "checkpoints") run = run.parent_path().parent_path();
  if (is_noted(source) && !source.starts_with(run.string() + '/')) return;
  throw UsageError(concat(shown(sources.file), ": the environment of this run is a program: ", shown(source),
                          " would be compiled and run", not_begun()));
}

void remember(const Environment& environment, const std::string& name) {
  if ((!is_python_environment(name) && !is_source_file(name)) || notes().empty()) return;
  const std::string game = is_source_file(name) ? name : game_of(environment);
  if (is_noted(game)) return;
  try {
    fs::create_directories(notes());
    write_file_atomically(note_of(game), game, Durability::kReplace);
  } catch (const std::exception& error) {
    logging::warn(
        concat("it cannot be noted that this run is yours, so eval, play and --resume will ask for --trust: ",
               error.what()));
  }
}

}  // namespace wd::outside
