// recorded.h: recordings and replay memories that are damaged at random, field by field and byte by byte, in
// this process. They may be refused with a UsageError that names the file. What is accepted must keep what
// docs/checkpoints.md promises, which is checked here from the files alone, and must be learned from without
// a crash.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "src/recorded/recording.h"
#include "tests/fuzz/targets.h"
#include "tests/run/temporary_folder.h"
#include "tests/support.h"
#include "wd/error.h"
#include "wd/replay.h"
#include "wd/trainer.h"

namespace wd::test {

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  std::int64_t below(std::int64_t n) {
    return n <= 0 ? 0 : std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }

  // Changes a safetensors file in one of the ways in which files are wrong.
  std::string damaged(std::string file) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    const std::int64_t data = 8 + static_cast<std::int64_t>(length),
                       size = static_cast<std::int64_t>(file.size());
    for (std::int64_t k = 1 + below(3); k > 0; --k) {
      switch (below(8)) {
        case 0:  // the header's text
          file[static_cast<std::size_t>(8 + below(data - 8))] = static_cast<char>(below(256));
          break;
        case 1:
          replace_digit(file, data);
          break;
        case 2:
          replace_word(file, data);
          break;
        case 3:
          file.resize(static_cast<std::size_t>(below(size + 64)));
          return file;
        default:
          overwrite(file, data);
      }
    }
    return file;
  }

 private:
  // A digit of a shape, an offset or the metadata.
  void replace_digit(std::string& file, std::int64_t data) {
    for (int tries = 0; tries < 50; ++tries) {
      char& letter = file[static_cast<std::size_t>(8 + below(data - 8))];
      if (letter < '0' || letter > '9') continue;
      letter = static_cast<char>('0' + below(10));
      return;
    }
  }
  // A name or a type by another one of the same length, so that the header stays readable.
  void replace_word(std::string& file, std::int64_t data) {
    constexpr std::array<std::array<const char*, 2>, 8> kWords = {{{"F32", "I32"},
                                                                   {"I32", "F32"},
                                                                   {"\"U8\"", "\"I8\""},
                                                                   {"truncated", "truncateD"},
                                                                   {"terminated", "reset_step"},
                                                                   {"reset_step", "terminated"},
                                                                   {"active", "reward"},
                                                                   {"false", "true "}}};
    const auto& [from, to] = kWords[static_cast<std::size_t>(below(kWords.size()))];
    const std::size_t at = file.find(from);
    if (at != file.npos && static_cast<std::int64_t>(at) < data) file.replace(at, std::strlen(from), to);
  }
  // Numbers of the data: what missing values, other conventions and attackers write.
  void overwrite(std::string& file, std::int64_t data) {
    constexpr std::array<std::uint32_t, 12> kNumbers = {0xffffffffu, 0x7fffffffu, 0x80000000u, 2u,
                                                        1u,          0u,          100u,        0x7fc00000u,
                                                        0x7f800000u, 0xff800000u, 0x7149f2cau, 0x40400000u};
    const auto size = static_cast<std::int64_t>(file.size());
    if (size - data < 4) return;
    const bool words = below(3) > 0;
    const std::uint32_t number = below(4) > 0 ? kNumbers[static_cast<std::size_t>(below(kNumbers.size()))]
                                              : static_cast<std::uint32_t>(below(1LL << 32));
    for (std::int64_t at = data + (words ? below((size - data) / 4) * 4 : below(size - data)),
                      n = 1 + below(5);
         n > 0 && at < size; --n, at += words ? 4 : 1)
      std::memcpy(file.data() + at, &number,
                  static_cast<std::size_t>(words ? std::min<std::int64_t>(4, size - at) : 1));
  }

  std::mt19937_64 random_;
};

// A host tensor of a file; undefined if there is none.
inline at::Tensor tensor_in(const SafetensorsReader& file, const char* name) {
  const TensorInfo* const info = file.find(name);
  if (info == nullptr) return {};
  const at::ScalarType type = info->dtype == "F32"   ? at::kFloat
                              : info->dtype == "I32" ? at::kInt
                              : info->dtype == "U8"  ? at::kByte
                                                     : at::kBFloat16;
  promise(dtype_of(type) == info->dtype, "an accepted tensor has a known type");
  const at::Tensor tensor = at::empty(info->shape, type);
  file.read(name, info->dtype, info->shape,
            {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())});
  return tensor;
}

inline void promise_finite(const at::Tensor& tensor, const std::string& what) {
  promise(!tensor.defined() || at::isfinite(tensor.to(at::kDouble)).all().item<bool>(), what + " is finite");
}

// The actions of rows that count are choices that the mask allows, or within bounds. All [R, S, A, ...].
inline void promise_actions(const ActionSpace& space, const at::Tensor& action, const at::Tensor& mask,
                            const at::Tensor& played) {
  const at::Tensor chosen = action.flatten(0, -2), counts = played.flatten();
  const at::Tensor legal = mask.defined() ? mask.flatten(0, -2) : mask;
  for (std::int64_t i = 0; i < counts.size(0); ++i) {
    if (counts[i].item<std::uint8_t>() == 0) continue;
    std::int64_t first = 0;
    for (std::int64_t k = 0; k < chosen.size(1); ++k) {
      if (space.is_continuous()) {
        const double number = chosen[i][k].item<double>();
        promise(std::isfinite(number), "an action is finite");
        promise(!space.bounds[static_cast<std::size_t>(k)].are_finite() || std::abs(number) <= 1.01,
                "an action is within bounds");
        continue;
      }
      const std::int64_t choice = chosen[i][k].item<std::int64_t>(),
                         n = space.heads[static_cast<std::size_t>(k)];
      promise(choice >= 0 && choice < n, "an action is a choice");
      promise(!legal.defined() || legal[i][first + choice].item<std::uint8_t>() != 0, "an action is legal");
      first += n;
    }
  }
}

// --- recordings ---

// Three replicas of a made-up game, and a recording of random steps in three files.
class RecordedGame {
 public:
  RecordedGame(const ActionSpace& space, int agents, bool masked, int at_resets = 0)
      : trajectory_(shape_of(space, agents, masked)),
        buffers_(trajectory_.policies()[0]),
        recording_(folder_.path / "recorded") {
    fill();
    for (std::int64_t t = 4; t < kSteps && at_resets != 0; t += 5) buffers_.action[t].fill_(at_resets);
    RecordingWriter writer(recording_, buffers_, recording_metadata("made up", spec_, buffers_), kSteps,
                           bytes_of_steps(5));
    writer.append(kSteps);
    for (std::int64_t part = 0; part < writer.parts(); ++part)
      good_.push_back(read_text(recording_ / concat("part-0000", part, ".safetensors")));
  }

  // Returns whether the damaged recording was accepted.
  bool feed(Damage& damage) {
    const auto part = static_cast<std::size_t>(damage.below(static_cast<std::int64_t>(good_.size())));
    const std::filesystem::path file = recording_ / concat("part-0000", part, ".safetensors");
    write_text(file, damage.damaged(good_[part]));
    const bool accepted = learn();
    write_text(file, good_[part]);
    return accepted;
  }

  bool learn() {
    try {
      const Recording recording(recording_);
      recording.check("made up", spec_, buffers_);
      promise_all(recording);
      for (const bool prioritized : {true, false}) draw_from(recording, prioritized);
      return true;
    } catch (const UsageError& error) {
      promise(std::string(error.what()).find("recorded") != std::string::npos,
              concat("a refusal names the file: ", error.what()));
      return false;
    }
  }

 private:
  static constexpr int kReplicas = 3, kSteps = 12;

  RolloutShape shape_of(const ActionSpace& space, int agents, bool masked) {
    spec_.roles = {{.name = "player",
                    .count = agents,
                    .observation = {{"place", 3}},
                    .action = space,
                    .action_mask = masked}};
    spec_.time_limit = 4;
    RolloutShape shape = RolloutShape::of_roles(spec_, kReplicas);
    shape.steps = kSteps;
    return shape;
  }
  std::int64_t bytes_of_steps(std::int64_t steps) const {
    const std::int64_t A = buffers_.num_agents;
    const std::int64_t mask = buffers_.action_mask.defined() ? buffers_.action_mask.size(3) : 0;
    return steps * kReplicas * (A * (3 * 4 + mask + buffers_.action.size(3) * 4 + 4 + 1 + 1) + 3);
  }
  // Episodes of four steps, and a step that resets.
  void fill() {
    const ActionSpace& space = buffers_.action_space;
    at::manual_seed(1);
    buffers_.observation.normal_();
    buffers_.reward.normal_();
    buffers_.active.fill_(1);
    if (buffers_.action_mask.defined()) buffers_.action_mask.fill_(1);
    for (std::int64_t t = 0; t < kSteps; ++t) {
      buffers_.truncated[t].fill_(t % 5 == 3 ? 1 : 0);
      buffers_.reset_step[t].fill_(t % 5 == 4 ? 1 : 0);
    }
    if (space.is_continuous()) {
      buffers_.action.uniform_(-1.0, 1.0);
    } else {
      for (std::int64_t k = 0; k < buffers_.action.size(3); ++k)
        buffers_.action.select(3, k).random_(space.heads[static_cast<std::size_t>(k)]);
      if (buffers_.action_mask.defined()) {  // every other choice that is not taken is illegal
        buffers_.action_mask.random_(2);
        std::int64_t first = 0;
        for (std::int64_t k = 0; k < buffers_.action.size(3);
             first += space.heads[static_cast<std::size_t>(k++)])
          buffers_.action_mask.narrow(0, 0, kSteps)
              .scatter_(3, buffers_.action.narrow(3, k, 1).to(at::kLong) + first, 1);
      }
    }
  }
  // Steps that reset are drawn too unless priorities keep them out.
  void draw_from(const Recording& recording, bool prioritized) {
    ReplaySettings settings;
    settings.batch_size = 6;
    settings.n_step = 2;
    settings.prioritized = prioritized;
    Replay replay({.policies = {}, .trajectory = trajectory_, .index = 0, .recorded = &recording}, settings,
                  0.9, 1.0);
    TrainingClock clock({});
    const at::Tensor importance = at::full({1}, 0.5f);
    for (int draw = 0; draw < 8; ++draw)
      promise_batch(replay.draw(clock, draw, importance.const_data_ptr<float>()));
  }
  void promise_all(const Recording& recording) const {
    for (std::int64_t part = 0; part < recording.parts(); ++part) {
      const SafetensorsReader file(recording_ / concat("part-0000", part, ".safetensors"));
      promise(file.tensors().size() == (buffers_.has_action_mask ? 9u : 8u),
              "no tensor is missing or foreign");
      const at::Tensor action = tensor_in(file, "action"), active = tensor_in(file, "active"),
                       reset = tensor_in(file, "reset_step");
      for (const char* name : {"observation", "reward"}) promise_finite(tensor_in(file, name), name);
      promise(action.sizes() ==
                  at::IntArrayRef({kReplicas, active.size(1), buffers_.num_agents, buffers_.action.size(3)}),
              "action's shape");
      promise_actions(buffers_.action_space, action, tensor_in(file, "action_mask"),
                      active.mul(reset.eq(0).unsqueeze(2)));
    }
  }
  void promise_batch(const ReplayBatch& batch) const {
    promise_finite(batch.reward, "a drawn reward");
    promise_finite(batch.now.observation, "a drawn observation");
    if (buffers_.action_space.is_continuous()) return;
    for (std::int64_t k = 0; k < batch.now.action.size(-1); ++k) {
      const at::Tensor column = batch.now.action.select(-1, k);
      promise(column.ge(0)
                  .logical_and(column.lt(buffers_.action_space.heads[static_cast<std::size_t>(k)]))
                  .all()
                  .item<bool>(),
              "a drawn action can be an index, also where it does not count");
    }
  }

  TemporaryFolder folder_;
  Spec spec_;
  Trajectory trajectory_;
  PolicyBuffers& buffers_;
  std::filesystem::path recording_;
  std::vector<std::string> good_;
};

inline void feed_recordings(int cases, std::uint64_t seed) {
  Damage damage(seed);
  const auto free = ActionSpace::box(
      {{-2.0f, 2.0f}, {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()}});
  std::array<RecordedGame, 3> games = {RecordedGame(ActionSpace::discrete({2}), 1, false),
                                       RecordedGame(ActionSpace::discrete({3, 2}), 2, true),
                                       RecordedGame(free, 2, false)};
  for (RecordedGame& game : games) promise(game.learn(), "the recording itself is good");
  int accepted = 0;
  for (int k = 0; k < cases; ++k)
    accepted += games[static_cast<std::size_t>(k) % games.size()].feed(damage) ? 1 : 0;
  std::printf("%d of %d damaged recordings were accepted\n", accepted, cases);
  EXPECT_GT(accepted, cases / 100) << "damage that matters not at all should be among them";
  EXPECT_LT(accepted, cases / 2);
}

// --- replay memories of checkpoints ---

class RememberingGame {
 public:
  explicit RememberingGame(const std::string& env, const std::string& policy)
      : setup_(make_setup(env, {"trainer.num_envs=4", "trainer.train_batch_size=12", "env.episode_length=4",
                                "policy={shared: {" + policy +
                                    ", batch_size: 8, replay_ratio: 1, buffer_size: 48, learning_starts: 0, "
                                    "model: {fc_dims: [4]}}}"})),
        trainer_(setup_.config, *setup_.environment, {}) {
    for (int i = 0; i < 3; ++i) trainer_.iterate();
    snapshot_ = trainer_.snapshot();
    const auto files = trainer_.write_memory(folder_.path / "replay");
    file_ = files.at("shared");
    good_ = read_text(file_);
  }

  bool feed(Damage& damage) { return learn(damage.damaged(good_)); }
  bool learn_good() { return learn(good_); }

 private:
  bool learn(const std::string& bytes) {
    write_text(file_, bytes);
    trainer_.restore(snapshot_);
    try {
      trainer_.read_memory({{"shared", file_}});
    } catch (const UsageError& error) {
      promise(std::string(error.what()).starts_with(file_.string()),
              concat("a refusal names the file: ", error.what()));
      return false;
    } catch (const std::runtime_error& error) {  // no safetensors file: its checksum would have said so
      promise(std::string(error.what()).starts_with(file_.string()),
              concat("a refusal names the file: ", error.what()));
      return false;
    }
    const SafetensorsReader file(file_);
    for (const char* name : {"observation", "reward", "priority"})
      promise_finite(tensor_in(file, name), name);
    promise_actions(trainer_.trajectory().policies()[0].action_space, tensor_in(file, "action"), {},
                    tensor_in(file, "flags").bitwise_and(1));
    try {
      trainer_.iterate();
    } catch (const UsageError&) {
      throw;
    } catch (const std::runtime_error& error) {  // a huge reward
      promise(std::string(error.what()).find("finite") != std::string::npos, error.what());
    }
    return true;
  }

  TemporaryFolder folder_;
  Experiment setup_;
  Trainer trainer_;
  Snapshot snapshot_;
  std::filesystem::path file_;
  std::string good_;
};

inline void feed_memories(int cases, std::uint64_t seed) {
  Damage damage(seed);
  RememberingGame choices("tag_gridworld", "algorithm: DQN, prioritized: true, n_step: 2"),
      box("pendulum", "algorithm: SAC");
  promise(choices.learn_good() && box.learn_good(), "the memory itself is good");
  int accepted = 0;
  for (int k = 0; k < cases; ++k) accepted += (k % 2 == 0 ? choices : box).feed(damage) ? 1 : 0;
  std::printf("%d of %d damaged replay memories were accepted\n", accepted, cases);
  EXPECT_GT(accepted, cases / 100);
}

}  // namespace wd::test
