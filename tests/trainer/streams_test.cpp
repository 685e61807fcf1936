// streams_test.cpp: streams of an environment: a uint8 image of each agent, which a module reads, and numbers
// of each replica, which only recordings keep.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <set>

#include "src/recorded/fields.h"
#include "src/recorded/recording.h"
#include "tests/support.h"
#include "tests/trainer/held_bytes.h"
#include "wd/error.h"
#include "wd/module.h"
#include "wd/replay.h"
#include "wd/trainer.h"

namespace wd::streams_test {
namespace {

using testing::HasSubstr;

struct Eyes : Module {
  struct Settings {
    int width = 16;
    void describe(Fields& field) { field("width", width, {1, 4096}, "of the hidden layer"); }
  };
  Eyes(const Settings& settings, const ModuleShape& shape) {
    for (const InputPart& part : shape.parts)
      if (part.name == "image") seen_shape = part.shape;
    hidden = register_module("hidden", torch::nn::Linear(16, settings.width));
    head = register_module("head", torch::nn::Linear(settings.width, shape.outputs));
  }
  at::Tensor forward(const ModuleInput& input) override {
    return head(torch::tanh(hidden(input["image"] / 255)));
  }
  OutputLayer output_layer() override { return {head->weight, head->bias}; }

  static inline std::vector<int> seen_shape;
  torch::nn::Linear hidden{nullptr}, head{nullptr};
};
WD_REGISTER_MODULE(Eyes, "eyes");

constexpr const char* kReads = "model: {type: eyes, reads: [observation, image]}";
constexpr int kReplicas = 16, kSteps = 8;

Experiment setup_of(const std::string& policy, std::vector<std::string> more = {}) {
  more.insert(more.end(), {concat("trainer.num_envs=", kReplicas),
                           concat("trainer.train_batch_size=", kReplicas * kSteps),
                           concat("policy={shared: {", policy, "}}")});
  return make_setup("seen", more);
}

double learned_return(const std::string& policy, int iterations) {
  const Experiment setup = setup_of(policy);
  Trainer trainer(setup.config, *setup.environment, {});
  for (int i = 0; i < iterations; ++i) trainer.iterate();
  return trainer.mean_return(0);
}

// Of 10 steps, 2.5 are right by chance.
TEST(Streams, PoliciesLearnFromAnImage) {
  EXPECT_GT(learned_return(concat("algorithm: PPO, lr: 0.01, gamma: 0, ", kReads), 60), 8.5);
  EXPECT_THAT(Eyes::seen_shape, testing::ElementsAre(1, 4, 4));
}

TEST(Streams, AMemoryRemembersTheImage) {
  EXPECT_GT(learned_return(
                concat("algorithm: DQN, lr: 0.01, gamma: 0, epsilon: [[0, 1], [4_000, 0.02]], buffer_size: "
                       "4_096, batch_size: 64, replay_ratio: 8, learning_starts: 500, ",
                       kReads),
                100),
            8.0);
  EXPECT_GT(
      learned_return(
          concat("algorithm: SAC, lr: 0.01, critic_lr: 0.01, gamma: 0, temperature: 0.02, tune_temperature: "
                 "false, buffer_size: 4_096, batch_size: 64, replay_ratio: 8, learning_starts: 500, ",
                 kReads),
          100),
      8.0);
}

TEST(Streams, OnlyWhatNetworksReadIsReplayed) {
  for (const bool reads : {true, false}) {
    const Experiment setup = setup_of(reads ? concat("algorithm: DQN, batch_size: 16, ", kReads)
                                            : std::string("algorithm: DQN, batch_size: 16"));
    Trainer trainer(setup.config, *setup.environment, {});
    ReplaySettings settings;
    settings.batch_size = 2 * kReplicas;
    const CountingMemory memory;
    Replay replay({.policies = trainer.policies(), .trajectory = trainer.trajectory()}, settings, 0.9, 1.0);
    EXPECT_EQ(memory.held(), Replay::bytes({.layout = trainer.trajectory().policies()[0],
                                            .model = setup.config.policies[0].model,
                                            .precision = kFp32,
                                            .replicas = kReplicas,
                                            .rollout_steps = kSteps,
                                            .num_envs = kReplicas},
                                           settings));
    std::set<std::string> names;
    for (const NamedTensor& named : replay.memory(1)) names.insert(named.name);
    EXPECT_EQ(names.contains("image"), reads);
    EXPECT_FALSE(names.contains("board"));
    double bytes = 0.0;
    for (const at::Tensor& buffer : trainer.trajectory().buffers())
      bytes += static_cast<double>(buffer.nbytes());
    EXPECT_EQ(bytes, trajectory_bytes(RolloutShape::of(setup.environment->spec(), setup.config, kReplicas)));
  }
}

// Image and board follow from the state in the same row.
TEST(Streams, RowsAreThoseOfTheSameStep) {
  const Experiment setup = setup_of("algorithm: A2C");
  Trainer trainer(setup.config, *setup.environment, {});
  for (int i = 0; i < 3; ++i) {
    trainer.rollout();
    const PolicyBuffers& buffers = trainer.trajectory().policies()[0];
    const at::Tensor image = buffers.stream_rows[0], board = buffers.stream_rows[1];
    ASSERT_EQ(image.sizes().vec(), (std::vector<std::int64_t>{kSteps + 1, kReplicas, 2, 16}));
    ASSERT_EQ(image.scalar_type(), at::kByte);
    ASSERT_EQ(board.sizes().vec(), (std::vector<std::int64_t>{kSteps + 1, kReplicas, 1, 3}));
    EXPECT_TRUE(image.eq(255).sum(-1).eq(4).all().item<bool>()) << "one quarter is bright";
    EXPECT_TRUE(image.eq(3).sum(-1).eq(12).all().item<bool>());
    for (int t = 0; t < kSteps; ++t) {
      const at::Tensor begins = buffers.reset_step[t].ne(0);
      const at::Tensor paid = at::where(begins.unsqueeze(1), at::zeros({1}),
                                        board[t].select(1, 0).narrow(1, 1, 2) + buffers.reward[t]);
      EXPECT_TRUE(at::equal(board[t + 1].select(1, 0).narrow(1, 1, 2), paid)) << t;
      // The bright quarter is the action that is paid.
      const at::Tensor quarter =
          image[t].eq(255).view({kReplicas, 2, 2, 2, 2, 2}).any(-1).any(3).flatten(2).to(at::kInt).argmax(-1);
      const at::Tensor right =
          buffers.action[t].squeeze(-1).eq(quarter).logical_and(begins.logical_not().unsqueeze(1));
      EXPECT_TRUE(at::equal(right.to(at::kFloat), buffers.reward[t])) << t;
    }
    trainer.iterate();
  }
  std::set<std::string> carried;
  for (const NamedTensor& row : trainer.trajectory().last_rows()) carried.insert(row.name);
  EXPECT_TRUE(carried.contains("shared/stream.image") && carried.contains("shared/stream.board"));
}

TEST(Streams, ATrainingGoesOnExactly) {
  for (const std::string algorithm :
       {"algorithm: PPO, ", "algorithm: DQN, batch_size: 16, learning_starts: 0, "}) {
    const Experiment setup = setup_of(algorithm + kReads);
    const auto weights_after = [&](bool interrupted) {
      auto trainer = std::make_unique<Trainer>(setup.config, *setup.environment, Device{});
      for (int i = 0; i < 2; ++i) trainer->iterate();
      if (interrupted) {
        const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "streams_memory";
        const Snapshot snapshot = trainer->snapshot();
        const auto files = trainer->write_memory(folder);
        trainer = std::make_unique<Trainer>(setup.config, *setup.environment, Device{});
        trainer->restore(snapshot);
        EXPECT_TRUE(!trainer->has_memory() || trainer->read_memory(files));
      }
      for (int i = 0; i < 2; ++i) trainer->iterate();
      return trainer->policies()[0].parameters().clone();
    };
    EXPECT_TRUE(at::equal(weights_after(false), weights_after(true))) << algorithm;
  }
}

// Returns the folder of a policy that has learned.
std::filesystem::path recorded(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / concat("streams_", name);
  std::filesystem::remove_all(folder);
  const Experiment setup = setup_of(concat("algorithm: PPO, lr: 0.01, gamma: 0, ", kReads));
  Trainer trainer(setup.config, *setup.environment, {});
  for (int i = 0; i < 60; ++i) trainer.iterate();
  const PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  RecordingWriter writer(folder / "shared", buffers,
                         recording_metadata("seen", setup.environment->spec(), buffers), 10 * kSteps,
                         1 << 20);
  for (int i = 0; i < 10; ++i) {
    trainer.rollout();
    writer.append(kSteps);
  }
  return folder;
}

TEST(Streams, RecordingsKeepAllAndClonesLearnFromThem) {
  const std::filesystem::path folder = recorded("clones");
  const SafetensorsReader file(recorded_part(folder / "shared", 0));
  ASSERT_NE(file.find("image"), nullptr);
  ASSERT_NE(file.find("board"), nullptr);
  EXPECT_EQ(file.find("image")->shape, (std::vector<std::int64_t>{kReplicas, 10 * kSteps, 2, 16}));
  EXPECT_EQ(file.find("board")->shape, (std::vector<std::int64_t>{kReplicas, 10 * kSteps, 1, 3}));
  const Experiment setup = setup_of(concat("algorithm: BC, lr: 0.01, batch_size: 64, ", kReads),
                                    {concat("trainer.offline=", folder.string())});
  Trainer trainer(setup.config, *setup.environment, {});
  for (int i = 0; i < 150; ++i) trainer.iterate();
  const MetricsRow row = trainer.take_metrics();
  const std::map<std::string, double> metrics(row.values().begin(), row.values().end());
  EXPECT_LT(metrics.at("shared/policy_loss"), 0.35) << "of four choices, log 4 = 1.39 at first";
}

TEST(Streams, RecordingsOfOtherGamesAreRefused) {
  const auto start = [&](const std::string& env, const std::filesystem::path& folder) {
    return usage_error_of([&] {
      const Experiment setup = make_setup(
          env, {concat("trainer.offline=", folder.string()), "trainer.num_envs=4",
                "trainer.train_batch_size=32", "policy={shared: {algorithm: BC, batch_size: 16}}"});
      const Trainer trainer(setup.config, *setup.environment, {});
    });
  };
  const std::filesystem::path folder = recorded("refused");
  EXPECT_THAT(start("cartpole", folder), HasSubstr("record it in this environment"));
  // The same file without the board, with one more tensor, and with a number that is none.
  const std::filesystem::path path = recorded_part(folder / "shared", 0);
  const auto read = [&](const std::function<void(std::vector<NamedTensor>&)>& change) {
    std::vector<NamedTensor> tensors;
    TensorMetadata metadata;
    {
      const SafetensorsReader file(path);
      metadata = file.metadata();
      for (const TensorInfo& info : file.tensors()) {
        const at::ScalarType type = info.dtype == "F32"   ? at::kFloat
                                    : info.dtype == "I32" ? at::kInt
                                                          : at::kByte;
        const at::Tensor tensor = at::empty(info.shape, type);
        file.read_part(
            info.name, 0,
            {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())});
        tensors.push_back({info.name, tensor});
      }
    }
    change(tensors);
    const std::filesystem::path changed = std::filesystem::path(testing::TempDir()) / "streams_changed";
    std::filesystem::remove_all(changed);
    std::filesystem::create_directories(changed / "shared");
    write_safetensors(recorded_part(changed / "shared", 0), views_of(tensors), metadata);
    return start("seen", changed);
  };
  EXPECT_EQ(read([](auto&) {}), "");
  EXPECT_THAT(read([](auto& tensors) {
                std::erase_if(tensors, [](const NamedTensor& t) { return t.name == "board"; });
              }),
              HasSubstr("has no tensor 'board'"));
  EXPECT_THAT(read([](auto& tensors) { tensors.push_back({"more", tensors[0].tensor}); }),
              HasSubstr("has a tensor 'more'"));
}

TEST(Streams, WhatCannotBeReadIsRefused) {
  const auto refused = [](const std::string& model) {
    return usage_error_of([&] { setup_of("algorithm: PPO, model: {" + model + "}"); });
  };
  EXPECT_THAT(refused("reads: [observation, image]"), HasSubstr("streams of uint8 are for modules"));
  EXPECT_THAT(
      refused("type: eyes, reads: [observation, picture]"),
      HasSubstr("'picture' is not to be read in this environment, which has observation, image, board, "
                "agent_id"));
  EXPECT_THAT(refused("type: eyes, reads: [image]"), HasSubstr("must begin with observation"));
  EXPECT_THAT(refused("type: eyes, reads: [observation, image, image]"), HasSubstr("twice"));
  for (const char* const model :
       {"type: eyes, reads: [observation, image, board, agent_id]", "reads: [observation, board, agent_id]"})
    EXPECT_EQ(refused(model), "");
}

TEST(Streams, WhatACriticCannotReadIsRefused) {
  const auto refused = [](const std::string& model, const std::string& algorithm = "PPO") {
    return usage_error_of([&] { setup_of("algorithm: " + algorithm + ", model: {" + model + "}"); });
  };
  EXPECT_THAT(
      refused("critic_reads: [observation, board]"),
      HasSubstr("policy.shared.model.critic_reads = [observation, board]: the value is an output of the "
                "actor's network, and has none of its own: set separate_value: true"));
  EXPECT_THAT(refused("critic_reads: [board]", "DQN, batch_size: 16"), HasSubstr("neither a critic"));
  EXPECT_THAT(refused("separate_value: true, critic_reads: [board, image]"),
              HasSubstr("model.critic_reads = [board, image]: streams of uint8 are for modules"));
  EXPECT_THAT(refused("separate_value: true, critic_reads: [picture]"),
              HasSubstr("'picture' is not to be read in this environment"));
  EXPECT_THAT(refused("separate_value: true, critic_reads: [board, board]"), HasSubstr("twice"));
  EXPECT_THAT(refused("separate_value: true, critic_reads: [agent_id]"), HasSubstr("must name more"));
  EXPECT_EQ(refused("separate_value: true, critic_reads: [board, agent_id]"), "");
  EXPECT_EQ(refused("critic_reads: [board]", "SAC, batch_size: 16"), "");
  const auto shared = [](const char* roles) {
    return usage_error_of([&] { make_setup("tag_gridworld", {concat("policy={", roles, "}")}); });
  };
  EXPECT_EQ(shared("shared: {algorithm: PPO, model: {reads: [observation, agent_id]}}"), "");
  EXPECT_EQ(shared("tagger: {model: {reads: [observation, agent_id]}}, runner: {}"), "");
  EXPECT_EQ(usage_error_of([] {
              make_setup("cartpole", {"policy={shared: {model: {reads: [observation, agent_id]}}}"});
            }),
            "");
}

}  // namespace
}  // namespace wd::streams_test
