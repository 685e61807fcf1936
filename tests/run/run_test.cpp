// run_test.cpp: a run's folder, from before training until after failures.
#include "src/run/run.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/base/host.h"
#include "src/base/name.h"
#include "src/base/version.h"
#include "tests/run/temporary_folder.h"
#include "wd/detail/parallel.h"
#include "wd/detail/vectors.h"
#include "wd/error.h"

namespace wd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using testing::HasSubstr;

RunOptions options_in(const fs::path& folder) {
  RunOptions options;
  options.env = "cartpole";
  options.device = "cpu";
  options.seed = 7;
  options.run_dir = folder;
  options.quiet = true;
  return options;
}

Progress some_progress() {
  Progress progress;
  progress.counts = {.iteration = 10, .env_steps = 2000, .agent_steps = 6000};
  progress.wall_s = 4.0;
  progress.mean_return = {{"a", 1.5}, {"b", std::numeric_limits<double>::quiet_NaN()}};
  return progress;
}

json summary_of(const fs::path& folder) { return json::parse(read_text(folder / "summary.json")); }

constexpr std::array<float, 2> kValues{1.0f, 2.0f};

std::vector<TensorView> some_tensors() { return {{"w", "F32", {2}, std::as_bytes(std::span(kValues))}}; }

// Redirects stderr to a pipe during its lifetime.
class PipedStderr {
 public:
  PipedStderr() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe2(ends_.data(), O_NONBLOCK), 0);
    ::dup2(ends_[1], STDERR_FILENO);
  }
  ~PipedStderr() {
    ::dup2(before_, STDERR_FILENO);
    for (const int descriptor : {before_, ends_[0], ends_[1]}) ::close(descriptor);
  }
  PipedStderr(const PipedStderr&) = delete;
  PipedStderr& operator=(const PipedStderr&) = delete;

  std::string text() const {
    std::string text(std::size_t{1} << 16, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(ends_[0], text.data(), text.size()), 0)));
    return text;
  }

 private:
  std::array<int, 2> ends_{};
  int before_;
};

TEST(Run, LeavesItsFiles) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "a" / "b";
  {
    RunOptions options = options_in(path);
    options.workers = 3;
    options.gpus = {"some GPU"};
    wd::Run run(options);
    run.write_config("env: {}\n");
    EXPECT_EQ(summary_of(path)["status"], "running");
    run.log(MetricsRow({.iteration = 10, .env_steps = 2000, .agent_steps = 6000}));
    run.display(some_progress());
    EXPECT_EQ(summary_of(path)["iterations"], 10);
    EXPECT_TRUE(run.save_weights("a", some_tensors()));
    run.finish(RunStatus::kFinished, "total_steps", some_progress());
  }
  json summary = summary_of(path);
  EXPECT_EQ(summary["hardware"]["host"], host_name());
  EXPECT_EQ(summary["hardware"]["cpu"], cpu_model());
  EXPECT_EQ(summary["hardware"]["vector_bits"], 8 * vector_bytes());
  EXPECT_EQ(summary["hardware"]["cores"], available_processors());
  EXPECT_EQ(summary["hardware"]["gpus"], json::parse(R"(["some GPU"])"));
  EXPECT_EQ(summary["version"]["program"], WD_VERSION);
  EXPECT_EQ(summary["version"]["commit"], kCommit);
  summary.erase("hardware");
  summary.erase("version");
  EXPECT_EQ(summary, json::parse(R"({"status": "finished", "env": "cartpole", "device": "cpu", "seed": 7,
      "iterations": 10, "env_steps": 2000, "agent_steps": 6000, "wall_s": 4.0, "env_steps_per_s": 500.0,
      "agent_steps_per_s": 1500.0, "peak_memory_bytes": 0, "mean_return": {"a": 1.5, "b": null},
      "stop_reason": "total_steps", "workers": 3})"));
  EXPECT_EQ(read_text(path / "config.yaml"), "env: {}\n");
  EXPECT_EQ(read_text(path / "metrics.jsonl"),
            "{\"iteration\":10,\"env_steps\":2000,\"agent_steps\":6000}\n");
  EXPECT_TRUE(fs::exists(path / "log.txt"));
  EXPECT_EQ(SafetensorsReader(path / "weights" / "a.safetensors").tensors().size(), 1u);
}

TEST(Run, ThatIsNotFinishedHasFailed) {
  const TemporaryFolder folder;
  {
    const wd::Run run(options_in(folder.path));
  }
  EXPECT_EQ(summary_of(folder.path)["status"], "failed");
}

TEST(Run, DefaultFolderIsNewEachTime) {
  const TemporaryFolder folder;
  RunOptions options = options_in("");
  options.base = folder.path;
  options.seed = std::numeric_limits<std::uint64_t>::max();
  const wd::Run first(options);
  const wd::Run second(options);
  EXPECT_NE(first.folder(), second.folder());
  EXPECT_EQ(first.folder().parent_path(), folder.path / "cartpole");
  EXPECT_THAT(first.folder().filename().string(),
              testing::MatchesRegex("[0-9]{8}-[0-9]{6}-18446744073709551615(-2)?"));
}

TEST(Run, BeginsWhereAStartWasKilledThatTriedTheDisk) {
  const TemporaryFolder folder;
  test::write_text(folder.path / ".probe", "0");
  EXPECT_NO_THROW(wd::Run{options_in(folder.path)});
  EXPECT_FALSE(std::filesystem::exists(folder.path / ".probe"));
}

TEST(Run, RefusesAFolderThatHoldsSomething) {
  const TemporaryFolder folder;
  test::write_text(folder.path / "thesis.tex", "");
  const std::string message = message_of<UsageError>([&] { wd::Run{options_in(folder.path)}; });
  EXPECT_THAT(
      message,
      HasSubstr("is not empty (it holds thesis.tex): go on with it by --resume auto, name a new folder with "
                "--run_dir"));
  EXPECT_THAT(message_of<UsageError>([&] { wd::Run{options_in(folder.path / "thesis.tex")}; }),
              HasSubstr("is a file"));
  EXPECT_THAT(message_of<UsageError>([&] { wd::Run{options_in(folder.path / "thesis.tex" / "a")}; }),
              HasSubstr("Not a directory"));
  EXPECT_THROW(wd::Run{options_in("/proc/run")}, UsageError);
  EXPECT_THROW(wd::Run{options_in("/")}, UsageError);
}

TEST(Run, I4_FullDiskIsFoundBeforeTraining) {
  const TemporaryFolder folder;
  {
    const test::FullDisk full(1000);
    EXPECT_THAT(message_of<UsageError>([&] { wd::Run{options_in(folder.path)}; }),
                HasSubstr("cannot be written"));
  }
  EXPECT_TRUE(fs::is_empty(folder.path)) << "so that the same command works once there is room";
}

TEST(Run, I3_NamesStayInTheirFolder) {
  for (const char* name : {"a", "tag_continuous", "A.b-c_9", "..."}) EXPECT_TRUE(is_name(name)) << name;
  for (const std::string& name : {std::string(), std::string("."), std::string(".."), std::string("a/b"),
                                  std::string("a b"), std::string("<b>"), std::string("\xc3\xa9"),
                                  std::string("a\n"), std::string(1, '\0'), std::string(101, 'a')}) {
    EXPECT_FALSE(is_name(name)) << name;
  }
  const TemporaryFolder folder;
  for (const std::string& name : {std::string("a\nb"), std::string("\x1b[2J"), std::string(300, 'a')})
    EXPECT_THROW(wd::Run{options_in(folder.path / name)}, UsageError) << name;
  RunOptions options = options_in(folder.path / "a");
  options.env = "../a";
  EXPECT_THROW(wd::Run{options}, UsageError);
  EXPECT_TRUE(fs::is_empty(folder.path));
  wd::Run run(options_in(folder.path / "a"));
  EXPECT_THROW(static_cast<void>(run.save_weights("../a", some_tensors())), UsageError);
}

TEST(Run, AFolderMayHaveAnyNameThatCanBeRead) {
  const TemporaryFolder folder;
  for (const std::string name : {"my first run", "L\xc3\xa4ufe \xe2\x82\xac", "a,b;'c'"}) {
    const wd::Run run(options_in(folder.path / name));
    EXPECT_TRUE(fs::exists(folder.path / name / "summary.json")) << name;
  }
}

TEST(Run, I5_SurvivesADeletedFolder) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "a";
  wd::Run run(options_in(path));
  run.write_config("env: {}\n");
  run.log(MetricsRow({.iteration = 1}));
  fs::remove_all(path);
  run.log(MetricsRow({.iteration = 2}));
  run.display(some_progress());
  EXPECT_EQ(read_text(path / "metrics.jsonl"), "{\"iteration\":2,\"env_steps\":0,\"agent_steps\":0}\n");
  fs::remove_all(path);
  EXPECT_TRUE(run.save_weights("a", some_tensors()));
  run.finish(RunStatus::kStopped, "signal", some_progress());
  EXPECT_EQ(summary_of(path)["status"], "stopped");
  EXPECT_EQ(read_text(path / "config.yaml"), "env: {}\n");
  EXPECT_THAT(read_text(path / "log.txt"), HasSubstr("was deleted while training"));
  const auto is_event_file = [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("events.out.tfevents.");
  };
  EXPECT_EQ(std::count_if(fs::directory_iterator(path), fs::directory_iterator(), is_event_file), 1)
      << "a name of its own, in the same second";
}

TEST(Run, TellsOfAFullDiskOnceAndGoesOn) {
  const TemporaryFolder folder;
  PipedStderr console;  // a captured stderr would be a file on the full disk
  {
    wd::Run run(options_in(folder.path));
    {
      const test::FullDisk full(10);
      for (int i = 1; i <= 3; ++i) run.log(MetricsRow({.iteration = i}));
      EXPECT_FALSE(run.save_weights("a", some_tensors()));
    }
    run.log(MetricsRow({.iteration = 4}));
    run.finish(RunStatus::kFinished, "total_steps", some_progress());
  }
  const std::string told = console.text();
  const auto count = [&told](const std::string& text) {
    std::size_t found = 0;
    for (auto at = told.find(text); at != std::string::npos; at = told.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("training goes on without metrics.jsonl"), 1u) << told;
  EXPECT_EQ(count("metrics.jsonl is written again"), 1u) << told;
  EXPECT_EQ(count("metrics.jsonl misses 3 rows"), 1u) << told;
  EXPECT_EQ(count("without weights/a"), 1u) << told;
  EXPECT_EQ(read_text(folder.path / "metrics.jsonl"),
            "{\"iteration\":4,\"env_steps\":0,\"agent_steps\":0}\n");
}

}  // namespace
}  // namespace wd
