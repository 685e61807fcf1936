// checkpoint_test.cpp: checkpoints are restored exactly, damaged or inconsistent ones are detected, and the
// right ones are kept.
#include "wd/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>

#include "src/checkpoint/manifest.h"
#include "src/run/lock.h"
#include "tests/run/temporary_folder.h"
#include "wd/error.h"

namespace wd {
namespace {

namespace fs = std::filesystem;
using checkpoint::Manifest;
using test::message_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;
using testing::HasSubstr;

Snapshot snapshot_of(std::int64_t iteration) {
  Snapshot snapshot;
  snapshot.counts = {iteration, 10 * iteration, 20 * iteration};
  snapshot.wall_s = 1.5;
  const auto value = static_cast<double>(iteration);
  snapshot.files["weights/shared"] = {{"layer.weight", at::full({2, 3}, value, at::kFloat)},
                                      {"layer.bias", at::zeros({0}, at::kFloat)}};
  snapshot.files["optimizer/shared"] = {{"steps", at::full({}, value, at::kFloat)}};
  snapshot.files["replicas"] = {{"blocks", at::arange(32, at::kByte)}};
  snapshot.files["episodes"] = {{"recent", at::full({3}, value, at::kDouble)},
                                {"running_length", at::full({2}, 7, at::kInt)}};
  return snapshot;
}

SnapshotForms forms_of(const Snapshot& snapshot) {
  SnapshotForms forms;
  for (const auto& [file, tensors] : snapshot.files)
    for (const NamedTensor& named : tensors) forms[file].push_back(form_of(named));
  return forms;
}

CheckpointInfo info_of(double mean_return) {
  CheckpointInfo info;
  info.environment = "cartpole";
  info.seed = 18'446'744'073'709'551'615ull;
  info.config_hash = 0xfedcba9876543210;
  info.mean_return = mean_return;
  info.offsets = {123, "events.out.tfevents.1.host.2", 456};
  info.products = {"product of rank 0: 1 0\n", ""};
  info.recordings = {{"tagger", "0123456789abcdef"}};
  return info;
}

// Saves checkpoints 1 .. count of a run; the returns determine which is best.
void save(const fs::path& run, const std::vector<double>& returns, int keep_last = 3) {
  Checkpoints checkpoints(run / "checkpoints", keep_last);
  for (std::size_t k = 0; k < returns.size(); ++k) {
    checkpoints.save(snapshot_of(static_cast<std::int64_t>(k + 1)), info_of(returns[k]), "name: cartpole\n");
  }
  ASSERT_TRUE(checkpoints.wait());
}

std::vector<std::string> names(const fs::path& run) {
  std::vector<std::string> names;
  for (const fs::path& path : list_checkpoints(run / "checkpoints"))
    names.push_back(path.filename().string());
  return names;
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Checkpoint, ComesBackAsItWas) {
  const TemporaryFolder run;
  save(run.path, {3.5});
  const Checkpoint read = newest_checkpoint(run.path);
  EXPECT_EQ(read.name(), "00000001");
  EXPECT_EQ(read.info.counts.env_steps, 10);
  EXPECT_EQ(read.info.counts.agent_steps, 20);
  EXPECT_EQ(read.info.environment, "cartpole");
  EXPECT_EQ(read.info.seed, info_of(0).seed);
  EXPECT_EQ(read.info.config_hash, info_of(0).config_hash);
  EXPECT_EQ(read.info.wall_s, 1.5);
  EXPECT_EQ(read.info.best_return, 3.5);
  EXPECT_EQ(read.info.best, "00000001");
  EXPECT_EQ(read.info.offsets.metrics_bytes, 123u);
  EXPECT_EQ(read.info.recordings, info_of(0).recordings);
  EXPECT_EQ(read.info.products, std::vector<std::string>({"product of rank 0: 1 0\n", ""}));
  EXPECT_EQ(read.info.offsets.events_file, "events.out.tfevents.1.host.2");
  const Snapshot original = snapshot_of(1), snapshot = read_snapshot(read, forms_of(original));
  ASSERT_EQ(snapshot.files.size(), original.files.size());
  for (const auto& [file, tensors] : original.files) {
    for (const NamedTensor& named : tensors) {
      const auto& there = snapshot.files.at(file);
      const auto found = std::find_if(there.begin(), there.end(),
                                      [&](const NamedTensor& t) { return t.name == named.name; });
      ASSERT_NE(found, there.end()) << named.name;
      EXPECT_EQ(found->tensor.scalar_type(), named.tensor.scalar_type());
      EXPECT_TRUE(at::equal(found->tensor, named.tensor)) << named.name;
    }
  }
}

TEST(Checkpoint, TheNewestIsTheBestWhileNoReturnIsKnown) {
  const TemporaryFolder run;
  const double unknown = std::nan("");
  const auto best = [&] { return fs::read_symlink(run.path / "checkpoints" / "best"); };
  save(run.path, {unknown, unknown});
  EXPECT_EQ(best(), "00000002");
  save(run.path, {unknown, unknown, -5.0, unknown});
  EXPECT_EQ(best(), "00000003");
}

TEST(Checkpoint, TheNewerOfEqualReturnsIsTheBest) {
  const TemporaryFolder run;
  const double unknown = std::nan("");
  const auto best = [&] { return fs::read_symlink(run.path / "checkpoints" / "best"); };
  save(run.path, {0.0, 0.0, unknown});
  EXPECT_EQ(best(), "00000002");
  save(run.path, {0.0, 0.0, unknown, 0.0});
  EXPECT_EQ(best(), "00000004");
  EXPECT_EQ(newest_checkpoint(run.path).info.best_return, 0.0);
}

TEST(Checkpoint, RemembersWhatWasSpentOnTheBest) {
  const TemporaryFolder run;
  {
    Checkpoints checkpoints(run.path / "checkpoints", 1);
    checkpoints.judged() = {12.5, -3.0, 700};
    checkpoints.save(snapshot_of(1), info_of(12.0), "name: cartpole\n");
  }
  const Checkpoint read = newest_checkpoint(run.path);
  Checkpoints again(run.path / "checkpoints", 1);
  EXPECT_TRUE(std::isnan(again.judged().at) && std::isnan(again.best_return()));
  again.continue_from(read);
  EXPECT_EQ(again.judged().at, 12.5);
  EXPECT_EQ(again.judged().lowest, -3.0);
  EXPECT_EQ(again.judged().steps, 700);
  EXPECT_EQ(again.best_return(), 12.0);
}

// What training goes on with is there only if weights/ is from before the last update.
TEST(Checkpoint, TrainedWeightsHaveTheFormOfWeights) {
  const TemporaryFolder run;
  Snapshot snapshot = snapshot_of(1);
  const SnapshotForms forms = forms_of(snapshot);
  const std::string weights = snapshot.files.lower_bound("weights/")->first;
  const std::string trained = "trained/" + weights.substr(weights.find('/') + 1);
  snapshot.files[trained] = snapshot.files.at(weights);
  Checkpoints checkpoints(run.path / "checkpoints", 3);
  checkpoints.save(snapshot, info_of(1.0), "name: cartpole\n");
  ASSERT_TRUE(checkpoints.wait());
  EXPECT_TRUE(read_snapshot(newest_checkpoint(run.path), forms).files.contains(trained));
  snapshot.counts.iteration = 2;
  snapshot.files[trained].pop_back();
  checkpoints.save(snapshot, info_of(1.0), "name: cartpole\n");
  ASSERT_TRUE(checkpoints.wait());
  EXPECT_THAT(message_of([&] { read_snapshot(newest_checkpoint(run.path), forms); }), HasSubstr("trained/"));
}

TEST(Checkpoint, KeepsTheLastAndTheBest) {
  const TemporaryFolder run;
  save(run.path, {1.0, 9.0, std::nan(""), 3.0, 4.0, 5.0}, 2);
  EXPECT_EQ(names(run.path), (std::vector<std::string>{"00000006", "00000005", "00000002"}));
  EXPECT_EQ(fs::read_symlink(run.path / "checkpoints" / "latest"), "00000006");
  EXPECT_EQ(fs::read_symlink(run.path / "checkpoints" / "best"), "00000002");
}

// C3: any changed byte and any truncation of any file.
TEST(CheckpointC3, AnyFlippedBitIsNoticedAndTheOlderOneIsUsed) {
  const TemporaryFolder run;
  save(run.path, {1.0, 2.0});
  const fs::path folder = run.path / "checkpoints" / "00000002";
  const std::vector<fs::path> files = files_of(folder);
  ASSERT_EQ(files.size(), 6u);
  std::mt19937 random(1);
  for (int k = 0; k < 10'000; ++k) {
    const fs::path& file = files[random() % files.size()];
    const std::string whole = read_text(file);
    std::string damaged = whole;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    write_text(file, damaged);
    const std::string message = message_of([&] { open_checkpoint(folder); });
    ASSERT_THAT(message, HasSubstr(file.string())) << k;
    write_text(file, whole);
  }
  EXPECT_EQ(newest_checkpoint(run.path).name(), "00000002");
  write_text(files[0], "");
  EXPECT_EQ(newest_checkpoint(run.path).name(), "00000001");
}

TEST(CheckpointC3, AnyTruncationIsNoticed) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  const fs::path folder = run.path / "checkpoints" / "00000001";
  for (const fs::path& file : files_of(folder)) {
    const std::string whole = read_text(file);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      write_text(file, whole.substr(0, length));
      ASSERT_THAT(message_of([&] { open_checkpoint(folder); }), HasSubstr(file.string())) << length;
    }
    write_text(file, whole + "x");
    EXPECT_THAT(message_of([&] { open_checkpoint(folder); }), HasSubstr(file.string()));
    fs::remove(file);
    EXPECT_THAT(message_of([&] { open_checkpoint(folder); }), HasSubstr(file.string()));
    write_text(file, whole);
  }
  EXPECT_NO_THROW(open_checkpoint(folder));
}

TEST(CheckpointC3, WhereNoneCanBeReadNothingIsBegunAnew) {
  const TemporaryFolder run;
  EXPECT_THROW(newest_checkpoint(run.path), UsageError);
  save(run.path, {1.0});
  fs::remove(run.path / "checkpoints" / "00000001" / "manifest.json");
  EXPECT_THAT(message_of([&] { newest_checkpoint(run.path); }),
              HasSubstr("none of its 1 checkpoints can be read"));
}

// A manifest with a correct checksum, whatever its content.
std::string sealed(const std::string& body) {
  const TemporaryFolder folder;
  write_text(folder.path / "body", body);
  std::array<char, 17> hex;
  std::snprintf(hex.data(), hex.size(), "%016llx",
                static_cast<unsigned long long>(checkpoint::digest_of(folder.path / "body").xxh3));
  return concat("{\"checkpoint\":", body, ",\"xxh3\":\"", hex.data(), "\"}\n");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// C6: a manifest may be undamaged and still contain wrong claims.
TEST(CheckpointC6, HostileManifestsAreRefused) {
  const std::string text = checkpoint::encode({info_of(1.0), {{"config.yaml", {1, 2}}}});
  const std::string body = text.substr(14, text.size() - 14 - 28);
  ASSERT_EQ(sealed(body), text);
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"config.yaml", "../config.yaml", "a file that does not belong to a checkpoint"},
      {"config.yaml", "/etc/passwd", "a file that does not belong to a checkpoint"},
      {"config.yaml", "a/../b", "a file that does not belong to a checkpoint"},
      {"config.yaml", "a/b/c", "a file that does not belong to a checkpoint"},
      {"config.yaml", "weights/..", "a file that does not belong to a checkpoint"},
      {"\"bytes\":1", "\"bytes\":-1", "bytes is not a count"},
      {"\"bytes\":1", "\"bytes\":18446744073709551615", "bytes is not a count"},
      {"\"bytes\":1", "\"bytes\":1e3", "bytes is not a count"},
      {"\"bytes\":1", "\"bytes\":\"1\"", "bytes is not a count"},
      {"\"iteration\":0", "\"iteration\":-5", "iteration is not a count"},
      {"\"iteration\":0", "\"iteration\":null", "iteration is not a count"},
      {"\"iteration\":0,", "", "is not a manifest"},
      {"\"world_size\":1", "\"world_size\":0", "world_size is not a count"},
      {"\"world_size\":1", "\"world_size\":2147483647", "world_size is not a count"},
      {"\"wall_s\":0.0", "\"wall_s\":-1e308", "wall_s is not a time"},
      {"\"wall_s\":0.0", "\"wall_s\":1e308", "wall_s is not a time"},
      {"\"seed\":18446744073709551615", "\"seed\":[]", "is not a manifest"},
      {"\"files\":{", "\"files\":{\"x\":3,", "is not a manifest"},
      {"events.out.tfevents.1.host.2", "../../x", "events_file names no event file"},
      {"\"format_version\":1", "\"format_version\":2",
       "has checkpoint format 2 where this program reads format 1"},
      {"\"format_version\":1", "\"format_version\":\"1\"", "names no format_version"},
      {"fedcba9876543210", "fedcba987654321g", "config_hash is not a checksum"},
  };
  for (const auto& [from, to, message] : cases) {
    EXPECT_THAT(
        message_of([&, from = from, to = to] { checkpoint::decode(sealed(replaced(body, from, to))); }),
        HasSubstr(message))
        << to;
  }
  for (const char* nothing : {"", "{}", "{\"checkpoint\":", "[]", "null"}) {
    EXPECT_THAT(message_of([&] { checkpoint::decode(nothing); }), HasSubstr("is not a manifest")) << nothing;
  }
  EXPECT_THAT(message_of([&] { checkpoint::decode(sealed(std::string(200'000, '['))); }),
              HasSubstr("names no format_version"));
}

TEST(CheckpointC6, ALinkInPlaceOfAFileIsRefused) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  const fs::path folder = run.path / "checkpoints" / "00000001", file = folder / "replicas.safetensors";
  fs::rename(file, run.path / "elsewhere");
  fs::create_symlink(run.path / "elsewhere", file);
  EXPECT_THAT(message_of([&] { open_checkpoint(folder); }),
              HasSubstr("replicas.safetensors: there is no such file"));
}

// Writes a file with one more tensor than `tensors`. The data of that tensor are a hole of the size that the
// header states.
void write_with_a_hole(const fs::path& path, const std::vector<NamedTensor>& tensors,
                       const std::string& dtype, const std::string& shape, std::uint64_t bytes) {
  write_safetensors(path, views_of(tensors));
  const std::string text = read_text(path);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof(length));
  const std::uint64_t data = text.size() - 8 - length;
  std::string header = text.substr(8, length);
  header.erase(header.find_last_of('}'));
  header += concat(",\"more\":{\"dtype\":\"", dtype, "\",\"shape\":", shape, ",\"data_offsets\":[", data, ",",
                   data + bytes, "]}}");
  length = header.size();
  write_text(path, std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header +
                       text.substr(text.size() - data));
  fs::resize_file(path, fs::file_size(path) + bytes);
}

// C6: tensors larger than this machine's memory. The shape is checked before memory is allocated.
TEST(CheckpointC6, TensorsThatNobodyAsksForAndTensorsOfAnotherShapeAreRefusedBeforeTheyAreRead) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  const Checkpoint read = open_checkpoint(run.path / "checkpoints" / "00000001");
  const fs::path file = read.folder / "replicas.safetensors";
  const Snapshot original = snapshot_of(1);
  constexpr std::uint64_t kHole = std::uint64_t{1} << 42;
  write_with_a_hole(file, original.files.at("replicas"), "U8", "[4398046511104]", kHole);
  SnapshotForms forms = forms_of(original);
  EXPECT_THAT(message_of([&] { read_snapshot(read, forms); }),
              HasSubstr(file.string() + ": tensor 'more' is not expected"));
  forms["replicas"].push_back({"more", at::kByte, {7, 8}});
  EXPECT_THAT(message_of([&] { read_snapshot(read, forms); }),
              HasSubstr(file.string() + ": tensor 'more' is U8 [4398046511104] where U8 [7, 8] is expected"));
  forms["replicas"].back().type = at::kDouble;
  forms["replicas"].back().shape = {kAnyLength};
  EXPECT_THAT(message_of([&] { read_snapshot(read, forms); }),
              HasSubstr("tensor 'more' is U8 [4398046511104] where F64 [any length] is expected"));
}

TEST(CheckpointC6, NumbersOfOptimizerStepsAreCounts) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  const Checkpoint read = newest_checkpoint(run.path);
  SnapshotForms forms = forms_of(snapshot_of(1));
  forms["optimizer/shared"][0].type = at::kLong;
  for (const std::int64_t steps : {std::int64_t{-1}, std::int64_t{9'000'000'000'000'000'000}}) {
    write_safetensors(read.folder / "optimizer" / "shared.safetensors",
                      std::vector<TensorView>{{"steps", "I64", {}, std::as_bytes(std::span(&steps, 1))}});
    EXPECT_THAT(message_of([&] { read_snapshot(read, forms); }),
                HasSubstr("optimizer/shared.safetensors: tensor steps holds a number that is not a count"));
  }
}

TEST(CheckpointC6, FilesAndTensorsAreThoseOfTheTraining) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  const Checkpoint read = newest_checkpoint(run.path);
  const SnapshotForms all = forms_of(snapshot_of(1));
  SnapshotForms forms = all;
  forms["episodes"][0].shape = {kAnyLength};
  EXPECT_EQ(read_snapshot(read, forms).files.at("episodes")[0].tensor.numel(), 3);
  forms = all;
  forms.erase("optimizer/shared");
  EXPECT_THAT(message_of([&] { read_snapshot(read, forms); }),
              HasSubstr("optimizer/shared.safetensors: does not belong to this training"));
  forms = all;
  forms["weights/other"] = {};
  EXPECT_THAT(message_of([&] { read_snapshot(read, forms); }),
              HasSubstr("has no file weights/other.safetensors"));
  forms = all;
  forms["weights/shared"].push_back({"head", at::kFloat, {1}});
  EXPECT_THAT(message_of([&] { read_snapshot(read, forms); }), HasSubstr("has no tensor 'head'"));
  // An element type that the format has but this program does not support.
  const std::uint16_t half = 0;
  write_safetensors(read.folder / "replicas.safetensors",
                    std::vector<TensorView>{{"blocks", "F16", {1}, std::as_bytes(std::span(&half, 1))}});
  EXPECT_THAT(message_of([&] { read_snapshot(read, all); }), HasSubstr("'blocks' is F16 [1] where U8 [32]"));
}

// The parts that evaluation needs are verified even if the other parts are ignored.
TEST(CheckpointC3, WeightsAloneAreVerifiedWhereNoMoreIsAskedFor) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  const fs::path folder = run.path / "checkpoints" / "00000001";
  fs::remove(folder / "optimizer" / "shared.safetensors");
  EXPECT_NO_THROW(open_checkpoint(folder, CheckpointParts::kWeights));
  for (const char* const name : {"config.yaml", "weights/shared.safetensors"}) {
    std::string text = read_text(folder / name);
    text.back() ^= 1;
    write_text(folder / name, text);
    EXPECT_THAT(message_of([&] { open_checkpoint(folder, CheckpointParts::kWeights); }),
                HasSubstr(concat(name, ": is damaged: its checksum is wrong")));
    text.back() ^= 1;
    write_text(folder / name, text);
  }
  fs::remove(folder / "manifest.json");
  EXPECT_TRUE(is_checkpoint(folder));
  EXPECT_THAT(message_of([&] { open_checkpoint(folder, CheckpointParts::kWeights); }),
              HasSubstr("manifest.json: there is no such file"));
  EXPECT_FALSE(is_checkpoint(run.path));
}

// C2: the disk is full when a checkpoint is due.
TEST(CheckpointC2, AFullDiskLeavesTheOldOnes) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  Checkpoints checkpoints(run.path / "checkpoints", 3);
  {
    const test::FullDisk full(40);
    checkpoints.save(snapshot_of(2), info_of(2.0), "name: cartpole\n");
    EXPECT_FALSE(checkpoints.wait());
  }
  EXPECT_EQ(newest_checkpoint(run.path).name(), "00000001");
  checkpoints.save(snapshot_of(3), info_of(1.5), "name: cartpole\n");
  EXPECT_TRUE(checkpoints.wait());
  EXPECT_EQ(newest_checkpoint(run.path).info.best, "00000003")
      << "the one that was never written cannot be the best";
}

TEST(Checkpoint, HalfMadeOnesAreClearedAway) {
  const TemporaryFolder run;
  save(run.path, {1.0});
  fs::create_directories(run.path / "checkpoints" / ".stage-00000002" / "weights");
  save(run.path, {});
  EXPECT_FALSE(fs::exists(run.path / "checkpoints" / ".stage-00000002"));
  EXPECT_EQ(names(run.path), (std::vector<std::string>{"00000001"}));
}

TEST(Checkpoint, NewerOnesAreSetAsideWhenTrainingGoesOnFromAnOlderOne) {
  const TemporaryFolder run;
  save(run.path, {1.0, 2.0, 3.0});
  const fs::path folder = run.path / "checkpoints";
  Checkpoints checkpoints(folder, 3);
  checkpoints.continue_from(open_checkpoint(folder / "00000002"));
  EXPECT_EQ(names(run.path), (std::vector<std::string>{"00000002", "00000001"}));
  EXPECT_TRUE(fs::exists(folder / ".aside-00000003" / "manifest.json"));
  EXPECT_EQ(fs::read_symlink(folder / "latest"), "00000002");
  EXPECT_EQ(fs::read_symlink(folder / "best"), "00000002");
}

TEST(Lock, NamesItsHolderAndEndsWithIt) {
  const TemporaryFolder run;
  {
    const run::Lock lock(run.path);
    const std::string message = message_of([&] { run::Lock{run.path}; });
    EXPECT_THAT(message, HasSubstr(concat("in use by process ", ::getpid(), " on ")));
  }
  EXPECT_NO_THROW(run::Lock{run.path});
}

}  // namespace
}  // namespace wd
