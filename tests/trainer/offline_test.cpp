// offline_test.cpp: recorded transitions: what is read is what was played, and training without playing.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "src/recorded/recording.h"
#include "tests/support.h"
#include "tests/trainer/held_bytes.h"
#include "wd/error.h"
#include "wd/replay.h"
#include "wd/trainer.h"

namespace wd::offline_test {
namespace {

using testing::HasSubstr;

using Settings = std::vector<std::string>;

constexpr int kRollouts = 4, kRolloutSteps = 10, kReplicas = 6, kAll = kRollouts * kRolloutSteps;

std::filesystem::path fresh_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / ("offline_" + name);
  std::filesystem::remove_all(folder);
  return folder;
}

struct Case {
  const char *name, *env;
  Settings settings;
  std::int64_t part_steps;  // of a recorded file
  bool prioritized = false;
};

// Episodes of 8 steps end within rollouts of 10 and within files.
Experiment setup_of(const Case& c, const Settings& more = {}) {
  Settings all = {concat("trainer.num_envs=", kReplicas),
                  concat("trainer.train_batch_size=", kReplicas * kRolloutSteps), "env.episode_length=8"};
  all.insert(all.end(), c.settings.begin(), c.settings.end());
  all.insert(all.end(), more.begin(), more.end());
  return make_setup(c.env, all);
}

ReplaySettings ring_settings(const Case& c) {
  ReplaySettings settings;
  settings.buffer_size = kAll * kReplicas;  // exactly what is recorded
  settings.batch_size = 4 * kReplicas;
  settings.n_step = 3;
  settings.prioritized = c.prioritized;
  return settings;
}

AlgorithmContext context_of(Trainer& trainer, std::size_t policy, const Recording* recorded = nullptr) {
  return {.policies = trainer.policies(),
          .trajectory = trainer.trajectory(),
          .index = static_cast<int>(policy),
          .recorded = recorded};
}

std::int64_t row_bytes(const PolicyBuffers& buffers) {
  const std::int64_t E = buffers.reward.size(1), A = buffers.num_agents;
  std::int64_t bytes = buffers.observation.size(2) * buffers.row_size() * buffers.observation.element_size();
  bytes += A * (buffers.action.size(3) * 4 + 4 + 1 + 1) + 3;
  if (buffers.action_mask.defined()) bytes += A * buffers.action_mask.size(3);
  return E * bytes;
}

struct Both {
  std::vector<std::unique_ptr<Replay>> live;
  std::vector<std::filesystem::path> folders;
};

// Plays, and gives each rollout to a ring and to files.
Both play(Trainer& trainer, const Experiment& setup, const Case& c, const std::filesystem::path& folder) {
  Both both;
  std::vector<RecordingWriter> writers;
  for (std::size_t p = 0; p < trainer.policies().size(); ++p) {
    const PolicyBuffers& buffers = trainer.trajectory().policies()[p];
    both.live.push_back(std::make_unique<Replay>(context_of(trainer, p), ring_settings(c), 0.9, 0.5));
    both.folders.push_back(folder / buffers.name);
    writers.emplace_back(both.folders.back(), buffers,
                         recording_metadata(setup.config.name, setup.environment->spec(), buffers), kAll,
                         c.part_steps * row_bytes(buffers));
  }
  for (int i = 0; i < kRollouts; ++i) {
    TrainingClock clock({});
    clock.set(i, 0);
    trainer.rollout();
    for (std::size_t p = 0; p < writers.size(); ++p) {
      both.live[p]->append(clock);
      writers[p].append(kRolloutSteps);
    }
  }
  for (const RecordingWriter& writer : writers) EXPECT_GT(writer.parts(), 1);
  return both;
}

class Recorded : public testing::TestWithParam<Case> {};

TEST_P(Recorded, ALoadedRingIsTheOneThatPlayFills) {
  const Case& c = GetParam();
  const Experiment setup = setup_of(c);
  Trainer trainer(setup.config, *setup.environment, {});
  const Both both = play(trainer, setup, c, fresh_folder(c.name));
  TrainingClock clock({});
  for (std::size_t p = 0; p < both.live.size(); ++p) {
    const Recording recording(both.folders[p]);
    const CountingMemory memory;
    Replay loaded(context_of(trainer, p, &recording), ring_settings(c), 0.9, 0.5);
    EXPECT_EQ(memory.held(), Replay::bytes({.layout = trainer.trajectory().policies()[p],
                                            .model = setup.config.policies[p].model,
                                            .precision = setup.config.trainer.precision,
                                            .replicas = kReplicas,
                                            .rollout_steps = kRolloutSteps,
                                            .num_envs = kReplicas,
                                            .recorded = kAll},
                                           ring_settings(c)));
    EXPECT_TRUE(loaded.learns(0));
    const at::Tensor importance = at::full({1}, 0.5f);
    std::int64_t masked = 0, began = 0;
    for (int draw = 0; draw < 20; ++draw) {
      clock.set(kRollouts - 1, 0);  // the live ring has just been filled
      const ReplayBatch& a = both.live[p]->draw(clock, draw, importance.const_data_ptr<float>());
      const ReplayBatch& b = loaded.draw(clock, draw, importance.const_data_ptr<float>());
      for (const auto& [name, x, y] :
           {std::tuple("entry", a.entry, b.entry), std::tuple("reward", a.reward, b.reward),
            std::tuple("discount", a.discount, b.discount), std::tuple("weight", a.weight, b.weight),
            std::tuple("observation", a.now.observation, b.now.observation),
            std::tuple("action", a.now.action, b.now.action), std::tuple("mask", a.now.mask, b.now.mask),
            std::tuple("next", a.next.observation, b.next.observation),
            std::tuple("legal", a.now.action_mask, b.now.action_mask),
            std::tuple("next legal", a.next.action_mask, b.next.action_mask)}) {
        ASSERT_EQ(x.defined(), y.defined()) << name;
        if (!x.defined()) continue;
        ASSERT_TRUE(at::equal(x, y)) << name << ' ' << draw;
      }
      masked += (b.now.mask == 0).sum().item<std::int64_t>();
      if (b.steps > 0) {  // where it counts, agents begin where they began in play; nobody recorded states
        ASSERT_TRUE(at::equal(a.now.restarted * a.now.mask, b.now.restarted * b.now.mask));
        ASSERT_TRUE(a.all.state.any().item<bool>() && !b.all.state.any().item<bool>());
        began += (b.now.restarted * b.now.mask).sum().item<std::int64_t>();
      }
      const at::Tensor error = at::arange(loaded.rows(), at::kFloat);
      both.live[p]->set_priorities(clock, error);
      loaded.set_priorities(clock, error);
    }
    EXPECT_TRUE(c.prioritized ? masked == 0 : masked > 0);
    EXPECT_EQ(began > 0, trainer.trajectory().policies()[p].state_size > 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Of, Recorded,
    testing::Values(
        Case{"cartpole", "cartpole", {}, 7}, Case{"one_step_per_file", "cartpole", {}, 1},
        Case{"prioritized", "cartpole", {}, 9, true},
        Case{"windows",
             "tag_gridworld",
             {"policy={shared: {algorithm: PPO, model: {type: gru, width: 8, sequence_length: 2}}}"},
             7},
        Case{"shared_bf16", "tag_gridworld", {"trainer.precision=bf16"}, 7},
        Case{"simple_tag",
             "simple_tag",
             {"policy={adversary: {algorithm: A2C}, good_agent: {algorithm: A2C}}"},
             11},
        Case{"roles", "tag_continuous", {"policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"}, 11},
        Case{"table",
             "tag_continuous",
             {"trainer.observations=table", "policy={tagger: {algorithm: A2C}, runner: {algorithm: A2C}}"},
             3}),
    [](const auto& info) { return info.param.name; });

// Two recorded replicas of 40 steps, of which one replica gets all, or four get half of one each.
TEST(Recording, ReplicasAreJoinedOrCutIntoEqualPieces) {
  const Case c{"pieces", "cartpole", {"trainer.num_envs=2", "trainer.train_batch_size=20"}, 7};
  const Experiment setup = setup_of(c);
  Trainer trainer(setup.config, *setup.environment, {});
  PolicyBuffers& buffers = trainer.trajectory().policies()[0];
  buffers.active.fill_(1);
  const std::filesystem::path folder = fresh_folder(c.name);
  RecordingWriter writer(folder, buffers, {}, kAll, 7 * row_bytes(buffers));
  for (int i = 0; i < kRollouts; ++i) {
    for (int t = 0; t < kRolloutSteps; ++t)
      for (int e = 0; e < 2; ++e) buffers.reward[t][e].fill_(100 * e + i * kRolloutSteps + t);
    writer.append(kRolloutSteps);
  }
  const Recording recording(folder);
  EXPECT_EQ(recording.entries(), 2 * kAll);
  EXPECT_EQ(recording.parts(), 6);
  EXPECT_EQ(recording.share(1), 80);
  EXPECT_EQ(recording.share(4), 20);
  EXPECT_EQ(recording.share(3), 26) << "two entries are left over";
  std::vector<float> rewards;
  recording.read("reward", 36, 8, [&](std::int64_t at, const at::Tensor& rows) {
    EXPECT_EQ(at, static_cast<std::int64_t>(rewards.size()));
    for (std::int64_t i = 0; i < rows.size(0); ++i) rewards.push_back(rows[i].item<float>());
  });
  EXPECT_EQ(rewards, (std::vector<float>{36, 37, 38, 39, 100, 101, 102, 103}));

  const auto flags = [&](std::int64_t first, std::int64_t n) {
    const at::Tensor all = recorded_flags(recording, first, n).flatten();
    std::vector<int> list;
    for (std::int64_t i = 0; i < n; ++i) list.push_back(all[i].item<std::uint8_t>());
    return list;
  };
  constexpr int kPlayed = 1, kEnds = 4;
  EXPECT_EQ(flags(37, 5), (std::vector<int>{kPlayed, kPlayed | kEnds, 0, kPlayed, kPlayed}))
      << "step 39 has no successor, so step 38 is followed by the last observation";
  EXPECT_EQ(flags(36, 4), (std::vector<int>(4, kPlayed))) << "the newest entries are not drawn anyway";
  EXPECT_EQ(flags(39, 2), (std::vector<int>{0, kPlayed}));
}

// Writes a recording of cartpole by an untrained policy and returns its folder.
std::filesystem::path recorded_cartpole(const std::string& name) {
  const Case c{"", "cartpole", {"policy={shared: {algorithm: A2C}}"}, 16};
  const std::filesystem::path folder = fresh_folder(name);
  const Experiment setup = setup_of(c);
  Trainer trainer(setup.config, *setup.environment, {});
  play(trainer, setup, c, folder);
  return folder;
}

const char* const kDqn =
    "policy={shared: {algorithm: DQN, batch_size: 12, replay_ratio: 0.4, target_every: 120, model: {fc_dims: "
    "[16]}}}";

Experiment offline_setup(const std::filesystem::path& folder, const Settings& more = {},
                         const std::string& env = "cartpole") {
  Settings all = {kDqn, "trainer.offline=" + folder.string()};
  all.insert(all.end(), more.begin(), more.end());
  return setup_of({"", env.c_str(), {}, 0}, all);
}

std::vector<at::Tensor> everything(Trainer& trainer) {
  std::vector<at::Tensor> all;
  const Snapshot snapshot = trainer.snapshot();
  for (const auto& [file, tensors] : snapshot.files)
    for (const NamedTensor& named : tensors) all.push_back(at::nan_to_num(named.tensor.clone()));
  return all;
}

bool same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return std::ranges::equal(a, b, [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

double metric(Trainer& trainer, const std::string& wanted) {
  const MetricsRow row = trainer.take_metrics();
  for (const auto& [name, value] : row.values())
    if (name == wanted) return value;
  throw std::runtime_error("no metric " + wanted);
}

TEST(Offline, LearnsWithoutASingleStep) {
  const Experiment setup = offline_setup(recorded_cartpole("learns"));
  Trainer trainer(setup.config, *setup.environment, {});
  const at::Tensor before = trainer.policies()[0].parameters().clone(),
                   blocks = trainer.replicas().blocks().clone();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainer.iterate());
  EXPECT_FALSE(at::equal(trainer.policies()[0].parameters(), before));
  EXPECT_TRUE(at::equal(trainer.replicas().blocks(), blocks));
  EXPECT_EQ(trainer.counts().env_steps, 3 * kReplicas * kRolloutSteps);
  const MetricsRow row = trainer.take_metrics();
  std::map<std::string, double> values(row.values().begin(), row.values().end());
  EXPECT_EQ(values["shared/updates"], 2.0);
  EXPECT_TRUE(std::isfinite(values["shared/total_loss"]));
  EXPECT_TRUE(std::isnan(values["shared/reward_mean"]));
  EXPECT_TRUE(std::isnan(values["shared/mean_return"]));
}

TEST(Offline, TrainingGoesOnWithTheSameBits) {
  const std::filesystem::path folder = recorded_cartpole("resumes"), files = fresh_folder("resumes_memory");
  for (const Settings& settings :
       {Settings{}, Settings{"policy.shared.prioritized=true", "policy.shared.n_step=3"},
        Settings{"policy={shared: {algorithm: BC, batch_size: 12, replay_ratio: 0.4}}"}}) {
    const Experiment setup = offline_setup(folder, settings);
    Trainer whole(setup.config, *setup.environment, {});
    for (int i = 0; i < 3; ++i) whole.iterate();
    const Snapshot snapshot = whole.snapshot();
    EXPECT_EQ(whole.has_memory(), settings.size() == 2) << "of a ring from files only priorities are saved";
    const auto memory = whole.write_memory(files);
    for (int i = 0; i < 3; ++i) whole.iterate();

    Trainer resumed(setup.config, *setup.environment, {});
    resumed.restore(snapshot);
    EXPECT_TRUE(resumed.read_memory(memory));
    for (int i = 0; i < 3; ++i) resumed.iterate();
    EXPECT_TRUE(same(everything(whole), everything(resumed)));
  }
}

// A shared observation of one kind, an action and its legal choices: the policy learns the recorded action.
TEST(Offline, BehaviorCloningLearnsTheRecordedActions) {
  const std::filesystem::path folder = recorded_cartpole("clones");
  const Experiment setup =
      offline_setup(folder, {"policy={shared: {algorithm: BC, batch_size: 12, replay_ratio: 2, lr: 0.01}}"});
  Trainer trainer(setup.config, *setup.environment, {});
  trainer.iterate();
  const double first = metric(trainer, "shared/policy_loss");
  EXPECT_NEAR(first, std::log(2.0), 0.15) << "two choices, about as likely at first";
  for (int i = 0; i < 200; ++i) trainer.iterate();
  EXPECT_LT(metric(trainer, "shared/policy_loss"), first - 0.02);
}

TEST(Offline, RefusesWhatDoesNotFit) {
  const std::filesystem::path folder = recorded_cartpole("fits");
  const auto start = [&](const Settings& more, const std::string& env = "cartpole") {
    return usage_error_of([&] {
      const Experiment setup = offline_setup(folder, more, env);
      const Trainer trainer(setup.config, *setup.environment, {});
    });
  };
  EXPECT_EQ(start({}), "");
  EXPECT_THAT(start({}, "acrobot"), HasSubstr("was recorded with actions = 2, and this training has 3"));
  EXPECT_THAT(start({"policy={shared: {algorithm: PPO}}"}),
              HasSubstr("policy.shared.algorithm = PPO: learns from what it plays"));
  EXPECT_THAT(start({"policy={shared: {algorithm: BC}}", "trainer.offline=''"}),
              HasSubstr("algorithm = BC: learns from recorded transitions: set trainer.offline"));
  EXPECT_THAT(start({"policy.shared.model.normalize_input=true"}),
              HasSubstr("nothing is played: take false"));
  EXPECT_THAT(start({"trainer.stop_return=100"}), HasSubstr("set trainer.stop_on: eval"));
  EXPECT_THAT(start({"policy.shared.n_step=40"}),
              HasSubstr("40 for each of 6 replicas, and n_step = 40 needs more"));
  EXPECT_THAT(start({"trainer.offline=" + (folder / "nothing").string()}),
              HasSubstr("nothing/shared: there is no such folder of recorded transitions: record again"));
}

// The place, and a reason.
TEST(Offline, DamagedFilesAreRefused) {
  const std::filesystem::path folder = recorded_cartpole("damaged") / "shared";
  const auto open = [&] { return usage_error_of([&] { const Recording recording(folder); }); };
  ASSERT_EQ(open(), "");
  const std::filesystem::path second = folder / "part-00001.safetensors",
                              third = folder / "part-00002.safetensors", kept = folder / "kept";
  std::filesystem::rename(second, kept);
  EXPECT_THAT(open(),
              HasSubstr("part-00001.safetensors: is missing: the parts before it have 16 of 40 steps"));
  std::filesystem::copy(third, second);
  EXPECT_THAT(
      open(),
      HasSubstr("part-00001.safetensors: does not continue the part before it: has steps 32 to 39 of 40 of 6 "
                "replicas where steps from 16 on of 40 of 6 are expected: record again"));
  std::filesystem::remove(second);
  std::ofstream(second) << "no tensors";
  EXPECT_THAT(open(), HasSubstr("part-00001.safetensors: "));
  std::filesystem::remove(second);
  std::filesystem::copy(kept, second);
  ASSERT_EQ(open(), "");
  std::filesystem::resize_file(second, std::filesystem::file_size(second) - 1);
  EXPECT_THAT(open(), HasSubstr("part-00001.safetensors: "));
}

TEST(Offline, AFolderWithFilesIsNotWrittenTo) {
  const std::filesystem::path folder = recorded_cartpole("twice");
  const Experiment setup = offline_setup(folder);
  Trainer trainer(setup.config, *setup.environment, {});
  EXPECT_THAT(usage_error_of(
                  [&] { RecordingWriter(folder / "shared", trainer.trajectory().policies()[0], {}, 1, 1); }),
              HasSubstr("is not empty: name a new folder"));
}

}  // namespace
}  // namespace wd::offline_test
