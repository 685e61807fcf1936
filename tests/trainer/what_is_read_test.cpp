// what_is_read_test.cpp: streams of replicas and ids of agents, as networks read them: each row those of
// its own replica and agent, the critic what the actor does not, while acting, learning and from a replay
// memory.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <functional>

#include "src/rollout/minibatches.h"
#include "src/trainer/weights_metadata.h"
#include "tests/support.h"
#include "wd/detail/parallel.h"
#include "wd/policy_gradient.h"
#include "wd/replay.h"
#include "wd/trainer.h"

namespace wd::critic_reads_test {
namespace {

constexpr int kReplicas = 16, kSteps = 8, kAgents = 2;
constexpr std::size_t kBoard = 1;

Experiment setup_of(const std::string& policy, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = {concat("trainer.num_envs=", kReplicas),
                                       concat("trainer.train_batch_size=", kReplicas * kSteps),
                                       concat("policy={shared: {", policy, "}}")};
  settings.insert(settings.end(), more.begin(), more.end());
  return make_setup("seen", settings);
}

constexpr const char* kCentral =
    "algorithm: PPO, model: {fc_dims: [24, 16], separate_value: true, reads: [observation, agent_id], "
    "critic_reads: [board, agent_id]}";
constexpr const char* kCritics =
    "algorithm: SAC, batch_size: 16, model: {fc_dims: [24, 16], critic_reads: [observation, board]}";
constexpr const char* kRecurrent =
    "algorithm: PPO, model: {type: gru, width: 12, sequence_length: 4, separate_value: true, critic_reads: "
    "[observation, board, agent_id]}";

// A training that has played a rollout.
struct Played {
  Experiment setup;
  Trainer trainer;

  explicit Played(const std::string& policy, const std::vector<std::string>& more = {})
      : setup(setup_of(policy, more)), trainer(setup.config, *setup.environment, {}) {
    trainer.rollout();
  }
  PolicyBuffers& buffers() { return trainer.trajectory().policies()[0]; }
  Policy& policy() { return trainer.policies()[0]; }
  // [E, A]: the values of row t.
  at::Tensor values(int t) {
    policy().evaluate(buffers(), t);
    return buffers().value[t].clone();
  }
};

// Which numbers of [E, A] differ.
at::Tensor changed(const at::Tensor& before, const at::Tensor& after) { return before.ne(after); }

TEST(CriticReads, AStateOfAReplicaChangesTheValuesOfItsAgentsOnly) {
  for (const char* const policy : {kCentral, kCritics, kRecurrent}) {
    Played played(policy);
    for (const int replica : {0, 5, kReplicas - 1}) {
      const at::Tensor before = played.values(3);
      played.buffers().stream_rows[kBoard][3][replica].add_(2.5f);
      at::Tensor expected = at::zeros({kReplicas, kAgents}, at::kBool);
      expected[replica].fill_(true);
      EXPECT_TRUE(at::equal(changed(before, played.values(3)), expected)) << policy << replica;
    }
  }
}

TEST(CriticReads, AnActorDoesNotSeeWhatItsCriticReads) {
  for (const char* const policy : {kCentral, kRecurrent}) {
    Played played(policy);
    const auto act = [&] {
      played.policy().act(played.buffers(), 3, {.seed = 4});
      return at::cat({played.buffers().log_prob[3], played.buffers().action[3].squeeze(-1).to(at::kFloat)});
    };
    const at::Tensor before = act(), value = played.buffers().value[3].clone();
    played.buffers().stream_rows[kBoard][3].add_(2.5f);
    EXPECT_TRUE(at::equal(before, act())) << policy;
    EXPECT_TRUE(changed(value, played.buffers().value[3]).all().item<bool>()) << policy;
  }
}

// Column a of the weights of agent_id is read by agent a, and by no other.
TEST(CriticReads, AnIdIsThatOfTheRowsAgent) {
  Played played(kCentral);
  for (const char* const prefix : {"layers.0.agent_id.weight", "value_layers.0.agent_id.weight"}) {
    at::Tensor weight;
    for (const NamedTensor& named : played.policy().named_parameters())
      if (named.name == prefix) weight = named.tensor;
    ASSERT_EQ(weight.sizes().vec(), (std::vector<std::int64_t>{24, kAgents}));
    const bool of_actor = std::string(prefix).starts_with("layers");
    const auto computed = [&] {
      played.policy().act(played.buffers(), 2, {.seed = 4, .greedy = true});
      return (of_actor ? played.buffers().log_prob : played.buffers().value)[2].clone();
    };
    for (int agent = 0; agent < kAgents; ++agent) {
      const at::Tensor before = computed();
      weight.select(1, agent).add_(0.5f);
      at::Tensor expected = at::zeros({kReplicas, kAgents}, at::kBool);
      expected.select(1, agent).fill_(true);
      EXPECT_TRUE(at::equal(changed(before, computed()), expected)) << prefix << agent;
    }
  }
}

at::Tensor gradient_of(Played& played) {
  const Sequences sequences = played.policy().sequences(kSteps);
  Minibatches whole(played.buffers(), kSteps, kReplicas, 1, 0, sequences);
  TrainingClock clock({});
  whole.shuffle(7, clock.time(), 0);
  LossSettings loss;
  loss.value_coeff = 0.7f;
  loss.entropy_coeff = 0.05f;
  PolicyGradient(played.policy()).accumulate(whole.gather(0), loss);
  return played.policy().gradients().clone();
}

void fill_targets(Played& played) {
  const at::Generator draws = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t{3});
  for (const at::Tensor& tensor : {played.buffers().advantage, played.buffers().target})
    tensor.copy_(at::randn(tensor.sizes(), draws));
  played.buffers().mask.fill_(1);
}

// What belongs to rows that do not count, of one agent or of a whole replica, has no part in the gradient.
TEST(CriticReads, RowsThatDoNotCountChangeNoGradient) {
  Played played(kCentral);
  fill_targets(played);
  PolicyBuffers& buffers = played.buffers();
  buffers.mask.select(2, 1).slice(1, 0, 6).zero_();  // one agent is out of six replicas
  buffers.mask[4].zero_();                           // and all are in step 4
  const at::Tensor before = gradient_of(played);
  EXPECT_GT(before.abs().max().item<float>(), 0.0f);
  buffers.stream_rows[kBoard][4].mul_(-3.0f);
  buffers.observation[4].add_(1.0f);
  buffers.observation.select(2, 1).slice(0, 0, kSteps).slice(1, 0, 6).add_(0.25f);
  EXPECT_TRUE(at::equal(before, gradient_of(played)));
  buffers.stream_rows[kBoard][5].mul_(-3.0f);
  EXPECT_FALSE(at::equal(before, gradient_of(played)));
}

TEST(CriticReads, GradientsHaveTheSameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  for (const char* const policy : {kCentral, kRecurrent}) {
    std::vector<at::Tensor> gradients;
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      Played played(policy);
      fill_targets(played);
      gradients.push_back(gradient_of(played));
    }
    EXPECT_TRUE(at::equal(gradients[0], gradients[1])) << policy;
    EXPECT_GT(gradients[0].abs().max().item<float>(), 0.0f);
  }
  set_num_threads(before);
}

// A board counts what its own agents have been paid, so that of the next step is that of the transition plus
// its rewards.
TEST(CriticReads, AMemoryGivesTheStateOfTheTransitionsReplica) {
  Played played("algorithm: SAC, batch_size: 32, model: {critic_reads: [board, agent_id]}");
  ReplaySettings settings;
  settings.batch_size = 2 * kReplicas;
  Replay replay({.policies = played.trainer.policies(), .trajectory = played.trainer.trajectory()}, settings,
                0.9, 1.0);
  TrainingClock clock({});
  clock.set(0, 0);
  replay.append(clock);
  const at::Tensor importance = at::ones({1});
  int compared = 0;
  for (int draw = 0; draw < 8; ++draw) {
    const ReplayBatch& batch = replay.draw(clock, draw, importance.const_data_ptr<float>());
    const at::Tensor now = batch.now.stream_rows[kBoard], next = batch.next.stream_rows[kBoard];
    ASSERT_EQ(now.sizes().vec(), (std::vector<std::int64_t>{2 * kReplicas, 1 + kAgents}));
    const at::Tensor paid = (next - now).narrow(1, 1, kAgents), reward = batch.reward.view({-1, kAgents});
    const at::Tensor goes_on =
        batch.discount.view({-1, kAgents}).ne(0).logical_and(batch.now.mask.view({-1, kAgents}).ne(0));
    EXPECT_TRUE(at::equal(paid.masked_select(goes_on), reward.masked_select(goes_on)));
    compared += goes_on.sum().item<int>();
  }
  EXPECT_GT(compared, 200);
}

TEST(CriticReads, AllTrainWithThem) {
  for (const std::string& policy :
       {std::string(kCentral), std::string(kCritics) + ", learning_starts: 0", std::string(kRecurrent),
        std::string(
            "algorithm: A2C, reuse_activations: true, model: {separate_value: true, layer_norm: true, "
            "normalize_input: true, critic_reads: [observation, board]}"),
        std::string("algorithm: DQN, batch_size: 16, learning_starts: 0, model: {reads: [observation, board, "
                    "agent_id], dueling: true}"),
        std::string("algorithm: PQN, model: {reads: [observation, agent_id], dueling: true}")})
    for (const char* const precision : {"fp32", "bf16"}) {
      const Experiment setup = setup_of(policy, {concat("trainer.precision=", precision)});
      Trainer trainer(setup.config, *setup.environment, {});
      for (int i = 0; i < 3; ++i) trainer.iterate();
      trainer.check();
      for (const Policy& one : trainer.policies())
        EXPECT_TRUE(one.parameters().isfinite().all().item<bool>()) << policy;
    }
}

// Of a table, whose units are replicas too, and of features of things.
TEST(CriticReads, TablesAndEntitiesHaveFurtherParts) {
  for (const char* const model :
       {"reads: [observation, agent_id]", "reads: [observation, agent_id], input: entities",
        "separate_value: true, critic_reads: [observation, agent_id]"})
    for (const char* const form : {"table", "rows"}) {
      const Experiment setup = make_setup(
          "tag_continuous", {"trainer.num_envs=4", "trainer.train_batch_size=32", "env.num_taggers=2",
                             "env.num_runners=3", concat("trainer.observations=", form),
                             concat("policy={tagger: {algorithm: PPO, model: {", model, "}}, runner: {}}")});
      Trainer trainer(setup.config, *setup.environment, {});
      for (int i = 0; i < 2; ++i) trainer.iterate();
      trainer.check();
    }
}

TEST(CriticReads, WeightsFilesSayWhatIsRead) {
  const auto words = [](const std::string& policy) {
    const Experiment setup = setup_of(policy);
    return weights_metadata(setup.config, setup.environment->spec(), setup.config.policies[0], {});
  };
  const TensorMetadata central = words(kCentral), plain = words("algorithm: PPO");
  EXPECT_EQ(central.at("reads"), "observation,agent_id");
  EXPECT_EQ(central.at("critic_reads"), "board,agent_id");
  EXPECT_EQ(central.at("agent_ids"), std::to_string(kAgents));
  EXPECT_THAT(central.at("streams"), testing::HasSubstr("board"));
  for (const char* const key : {"reads", "critic_reads", "streams", "agent_ids", "agents"})
    EXPECT_FALSE(plain.contains(key)) << key;
  EXPECT_THAT(print_config(setup_of(kCentral).config, [](Fields&) {}),
              testing::HasSubstr("critic_reads: [\"board\", \"agent_id\"]"));
  EXPECT_THAT(print_config(setup_of("algorithm: PPO").config, [](Fields&) {}),
              testing::Not(testing::HasSubstr("critic_reads")));
}

}  // namespace
}  // namespace wd::critic_reads_test
