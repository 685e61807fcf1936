// window_record_test.cpp: records iterations of algorithms that learn from windows of a network with a state,
// with all that was played and all that was learned, in $WD_RECORD_DIR for window_oracle_test.py.
#include "tests/algorithm/record.h"
#include "wd/model.h"

namespace wd {
namespace {

struct WindowCase {
  std::string name;
  const char* network;
  std::string algorithm;
  ActionSpace actions;
  int length = 4;  // of what is learned from in a window
  std::function<void(OffPolicySettings&, ModelSettings&)> set = [](OffPolicySettings&, ModelSettings&) {};
};

class WindowRecords : public testing::TestWithParam<WindowCase> {};

// Blocks of a few windows, the last of which has fewer.
TEST_P(WindowRecords, Iterations) {
  const WindowCase& c = GetParam();
  Spec spec = spec_of(c.actions, !c.actions.is_continuous());
  PolicySettings settings;
  settings.name = "agent";
  settings.learn_by(c.algorithm);
  auto& own = settings.algorithm.as<OffPolicySettings>();
  set_common(own, settings.model);
  settings.model.set_type(c.network);
  settings.model.init_method = kTorchDefault;  // biases too
  settings.model.sequence_length = c.length;
  own.lr = 0.004;
  own.clip_grad_norm = true;
  own.replay.burn_in = 3;
  own.replay.n_step = 2;
  own.replay.prioritized = true;
  own.replay.batch_size = c.length * kEnvs;
  c.set(own, settings.model);
  own.replay.replay_ratio = 2.0 * static_cast<double>(own.replay.batch_size) / (kSteps * kEnvs);

  const bool mixes = own.traits().mixer.reads_state();
  if (mixes) {
    spec.streams = {{"state", StreamSpec::kReplica, {5}}};
    settings.model.critic_reads = {"state"};
  }
  Cast cast = Cast::of_roles(spec, {"agent"}, {0});
  cast.policies[0].state_size = settings.model.state_size();
  cast.policies[0].reads = settings.model.critic_reads;
  Trajectory trajectory({spec, cast, kSteps, kEnvs});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Policy policy(buffers, settings, 0, kSeed, kChunkRows, {}, kFp32);
  Learner learner({&policy, 1}, trajectory, 0, settings, kSeed);
  Record record;
  add_critics(record, "before.", policy);
  const at::Tensor& stream = buffers.stream_rows[0];
  record_iterations(
      record, policy, learner, trajectory,
      {.fill =
           [&](Draws& draws) {
             // The rollout goes on from the states behind the last one; agents begin anywhere.
             buffers.state[0].copy_(buffers.state[kSteps]);
             std::vector<std::uint8_t> restarted;
             for (std::int64_t i = 0; i < buffers.restarted.numel(); ++i)
               restarted.push_back(draws.one_in(6) ? 1 : 0);
             fill(buffers.restarted, restarted);
             if (stream.defined()) fill(stream, draws.uniforms(stream.numel(), -2.0f, 2.0f));
           },
       .played =
           [&](const std::string& prefix) {
             record.add(prefix + "state", buffers.state);
             record.add(prefix + "restarted", buffers.restarted);
             if (stream.defined()) record.add(prefix + "stream", stream.select(2, 0).narrow(2, 0, 5));
           },
       .learned = [&](const std::string& prefix) { add_learned_critics(record, prefix, policy, learner); }});
  TensorMetadata metadata = replay_metadata(own, c.actions,
                                            {{"algorithm", own.name()},
                                             {"components", text(c.actions.components())},
                                             {"sequence_length", text(c.length)},
                                             {"burn_in", text(own.replay.burn_in)},
                                             {"quantiles", text(settings.model.quantiles)},
                                             {"dueling", text(settings.model.dueling ? 1 : 0)}});
  if (const auto* dqn = dynamic_cast<const DqnSettings*>(&own)) {
    metadata.merge(TensorMetadata{{"target_every", text(dqn->target_every)},
                                  {"tau", text(dqn->tau)},
                                  {"double_q", text(dqn->double_q ? 1 : 0)},
                                  {"huber", text(dqn->huber)},
                                  {"cql_alpha", text(dqn->cql_alpha)},
                                  {"units", text(dqn->mixer.units)}});
  } else {
    const auto& actor = dynamic_cast<const ActorCriticSettings&>(own);
    metadata.merge(TensorMetadata{{"critics", text(own.traits().critics)},
                                  {"critic_lr", text(value_at(actor.critic_lr, 0))},
                                  {"tau", text(actor.tau)},
                                  {"huber", text(actor.huber)},
                                  {"policy_delay", text(actor.policy_delay)}});
  }
  if (settings.algorithm.is<SacSettings>()) {
    const auto& sac = settings.algorithm.as<SacSettings>();
    metadata["temperature"] = text(sac.temperature);
    metadata["temperature_lr"] = text(value_at(sac.temperature_lr, 0));
  }
  record.write(record_folder() / (c.name + ".safetensors"), metadata);
}

void set_actor(OffPolicySettings& settings, ModelSettings&) {
  auto& actor = dynamic_cast<ActorCriticSettings&>(settings);
  actor.critic_lr = 0.01;
  actor.tau = 0.3;
  actor.random_steps = 0;
  if (auto* td3 = dynamic_cast<Td3Settings*>(&settings)) td3->target_noise = 0.0;
}

void set_dqn(OffPolicySettings& settings, ModelSettings&) {
  auto& dqn = dynamic_cast<DqnSettings&>(settings);
  dqn.epsilon = 0.5;
  dqn.target_every = 2 * kSteps * kEnvs;
  dqn.tau = 0.3;
  dqn.huber = 0.8;
  dqn.mixer.units = 4;
  dqn.mixer.hidden = {7};
}

INSTANTIATE_TEST_SUITE_P(
    Updates, WindowRecords,
    testing::Values(
        WindowCase{"dqn", "gru", "DQN", ActionSpace::discrete({3, 4}), 4, set_dqn},
        WindowCase{"dqn_parts", "lstm", "DQN", ActionSpace::discrete({4}), 5,
                   [](OffPolicySettings& settings, ModelSettings& model) {
                     set_dqn(settings, model);
                     dynamic_cast<DqnSettings&>(settings).cql_alpha = 0.4;
                     settings.replay.n_step = 1;
                     settings.replay.burn_in = 1;
                     model.quantiles = 3;
                     model.dueling = true;
                   }},
        WindowCase{"dqn_spaced", "mingru", "DQN", ActionSpace::discrete({4}), 2,
                   [](OffPolicySettings& settings, ModelSettings& model) {
                     set_dqn(settings, model);
                     dynamic_cast<DqnSettings&>(settings).double_q = false;
                     settings.replay.prioritized = false;
                     settings.replay.burn_in = 6;
                     settings.replay.batch_size = 2;
                   }},
        WindowCase{"qmix", "lstm", "QMIX", ActionSpace::discrete({5}), 4, set_dqn},
        WindowCase{"vdn", "mingru", "VDN", ActionSpace::discrete({3, 2}), 3, set_dqn},
        WindowCase{"sac_choices", "gru", "SAC", ActionSpace::discrete({3, 2}), 4, set_actor},
        WindowCase{"sac", "lstm", "SAC", ActionSpace::box({{-2.0f, 2.0f}, {-1.0f, 3.0f}}), 4, set_actor},
        WindowCase{"sac_mingru", "mingru", "SAC", ActionSpace::box({{-2.0f, 2.0f}, {-1.0f, 3.0f}}), 2,
                   set_actor},
        WindowCase{"td3", "gru", "TD3", ActionSpace::box({{-2.0f, 2.0f}, {-1.0f, 3.0f}}), 3, set_actor}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd
