// actor_critic_record_test.cpp: records iterations of DDPG, TD3 and SAC, with all that was played and all
// that was learned, in $WD_RECORD_DIR for actor_critic_oracle_test.py.
#include "tests/algorithm/record.h"
#include "wd/model.h"

namespace wd {
namespace {

struct ActorCase {
  std::string name;
  AlgorithmChoice algorithm;
  ActionSpace actions;
  std::function<void(AlgorithmSettings&, ModelSettings&)> set;
};

class ActorCriticRecords : public testing::TestWithParam<ActorCase> {};

TEST_P(ActorCriticRecords, Iterations) {
  const ActorCase& c = GetParam();
  Spec spec = spec_of(c.actions, !c.actions.is_continuous());
  PolicySettings settings;
  settings.name = "agent";
  settings.algorithm = c.algorithm;
  auto& own = settings.algorithm.as<ActorCriticSettings>();
  set_common(own, settings.model);
  own.lr = 0.004;
  own.critic_lr = 0.01;
  own.clip_grad_norm = true;
  own.tau = 0.3;
  own.random_steps = kSteps * kEnvs + 5;
  c.set(own, settings.model);

  const std::vector<std::string>& critic_reads = settings.model.critic_reads;
  if (!critic_reads.empty()) spec.streams = {{"state", StreamSpec::kReplica, {5}}};
  Cast cast = Cast::of_roles(spec, {"agent"}, {0});
  cast.policies[0].carries_noise = settings.algorithm->traits().carries_noise;
  cast.policies[0].reads = critic_reads;
  Trajectory trajectory({spec, cast, kSteps, kEnvs});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Policy policy(buffers, settings.model, 0, kSeed, kChunkRows, {}, kFp32, settings.algorithm->traits().output,
                {settings.algorithm->traits().critics, settings.model.quantiles});
  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed);
  EXPECT_FALSE(learner.algorithm().wants_values());
  EXPECT_FALSE(learner.algorithm().can_be_undone());
  Record record;
  add_critics(record, "before.", policy);
  const at::Tensor& state = buffers.stream_rows[0];
  record_iterations(
      record, policy, learner, trajectory,
      {.fill =
           [&](Draws& draws) {
             if (state.defined()) fill(state, draws.uniforms(state.numel(), -2.0f, 2.0f));
             if (buffers.noise.defined()) buffers.noise[0].copy_(buffers.noise[kSteps]);
           },
       .played =
           [&](const std::string& prefix) {
             if (state.defined()) record.add(prefix + "state", state);
             if (!buffers.noise.defined()) return;
             record.add(prefix + "noise", buffers.noise);
             record.add(prefix + "restarted", buffers.restarted);
           },
       .learned = [&](const std::string& prefix) { add_learned_critics(record, prefix, policy, learner); }});
  TensorMetadata metadata = replay_metadata(own, c.actions,
                                            {{"algorithm", own.name()},
                                             {"critic_reads", join(critic_reads, " ")},
                                             {"components", text(c.actions.components())},
                                             {"critics", text(own.traits().critics)},
                                             {"quantiles", text(settings.model.quantiles)},
                                             {"critic_lr", text(value_at(own.critic_lr, 0))},
                                             {"tau", text(own.tau)},
                                             {"policy_delay", text(own.policy_delay)},
                                             {"huber", text(own.huber)},
                                             {"random_steps", text(own.random_steps)}});
  if (settings.algorithm.is<SacSettings>()) {
    const auto& sac = settings.algorithm.as<SacSettings>();
    metadata["temperature"] = text(sac.temperature);
    metadata["cql_alpha"] = text(sac.cql_alpha);
    metadata["tune_temperature"] = text(sac.tune_temperature ? 1 : 0);
    metadata["temperature_lr"] = text(value_at(sac.temperature_lr, 0));
    if (sac.target_entropy) metadata["target_entropy"] = text(*sac.target_entropy);
  } else {
    const auto& ddpg = dynamic_cast<const DdpgSettings&>(own);
    metadata["noise"] = text(value_at(ddpg.noise, 0));
    metadata["noise_damping"] = text(ddpg.noise_damping);
  }
  if (settings.algorithm.is<Td3Settings>()) {
    const auto& td3 = settings.algorithm.as<Td3Settings>();
    metadata["target_noise"] = text(td3.target_noise);
    metadata["target_noise_clip"] = text(td3.target_noise_clip);
  }
  record.write(record_folder() / (c.name + ".safetensors"), metadata);
}

ActionSpace box() { return ActionSpace::box({{-2.0f, 2.0f}, {-1.0f, 3.0f}}); }

void nothing(AlgorithmSettings&, ModelSettings&) {}

INSTANTIATE_TEST_SUITE_P(
    Updates, ActorCriticRecords,
    testing::Values(ActorCase{"ddpg", DdpgSettings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings&) {
                                auto& ddpg = dynamic_cast<DdpgSettings&>(settings);
                                ddpg.noise_damping = 0.3;
                                ddpg.replay.prioritized = true;
                              }},
                    ActorCase{"td3", Td3Settings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings&) {
                                auto& td3 = dynamic_cast<Td3Settings&>(settings);
                                td3.target_noise_clip = 0.25;
                                td3.replay.n_step = 3;
                              }},
                    ActorCase{"td3_quantiles", Td3Settings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings& model) {
                                auto& td3 = dynamic_cast<Td3Settings&>(settings);
                                td3.huber = 0.3;
                                td3.replay.prioritized = true;
                                model.quantiles = 4;
                                model.critic_dims = {12, 12};
                              }},
                    ActorCase{"sac", SacSettings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings& model) {
                                auto& sac = dynamic_cast<SacSettings&>(settings);
                                sac.temperature_lr = 0.02;
                                sac.temperature = 0.5;
                                model.initial_log_std = -0.7;
                              }},
                    ActorCase{"sac_five_critics", SacSettings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings&) {
                                dynamic_cast<SacSettings&>(settings).num_critics = 5;
                              }},
                    ActorCase{"sac_conservative", SacSettings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings& model) {
                                auto& sac = dynamic_cast<SacSettings&>(settings);
                                sac.cql_alpha = 0.7;
                                sac.replay.prioritized = true;
                                model.quantiles = 2;
                              }},
                    ActorCase{"sac_fixed", SacSettings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings& model) {
                                auto& sac = dynamic_cast<SacSettings&>(settings);
                                sac.tune_temperature = false;
                                sac.temperature = 0.2;
                                sac.replay.prioritized = true;
                                sac.policy_delay = 3;
                                model.quantiles = 3;
                              }},
                    ActorCase{"sac_choices", SacSettings(), ActionSpace::discrete({3, 4}),
                              [](AlgorithmSettings& settings, ModelSettings&) {
                                auto& sac = dynamic_cast<SacSettings&>(settings);
                                sac.temperature_lr = 0.02;
                                sac.target_entropy = 1.2;
                                sac.cql_alpha = 0.4;
                                sac.replay.n_step = 2;
                              }},
                    ActorCase{"sac_central", SacSettings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings& model) {
                                dynamic_cast<SacSettings&>(settings).cql_alpha = 0.3;
                                model.critic_reads = {"state", "agent_id"};
                              }},
                    ActorCase{"sac_choices_central", SacSettings(), ActionSpace::discrete({3, 4}),
                              [](AlgorithmSettings& settings, ModelSettings& model) {
                                dynamic_cast<SacSettings&>(settings).replay.n_step = 2;
                                model.critic_reads = {"state", "agent_id"};
                              }},
                    ActorCase{"td3_central", Td3Settings(), box(),
                              [](AlgorithmSettings&, ModelSettings& model) {
                                model.critic_reads = {"observation", "state"};
                              }},
                    ActorCase{"sac_blocks", SacSettings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings&) {
                                learn_in_blocks(dynamic_cast<SacSettings&>(settings).replay);
                              }},
                    ActorCase{"td3_blocks", Td3Settings(), box(),
                              [](AlgorithmSettings& settings, ModelSettings&) {
                                learn_in_blocks(dynamic_cast<Td3Settings&>(settings).replay);
                              }},
                    ActorCase{"sac_choices_default", SacSettings(), ActionSpace::discrete({5}), nothing}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd
