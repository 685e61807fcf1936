// record_test.cpp: records whole updates, with all inputs and outputs, in $WD_RECORD_DIR for
// torch_oracle_test.py.
#include "tests/algorithm/record.h"

#include "wd/policy_gradient.h"

namespace wd {
namespace {

struct Case {
  std::string name;
  ActionSpace action;
  bool masks = false;
  PolicySettings settings;
  Precision precision = kFp32;
  bool first_weights = false;  // as a training begins, with units of values that are not known yet
  bool waiting = false;        // in every other row each head has one legal choice
  bool as_warpdrives = false;  // no truncation, and no agent leaves early: WarpDrive supports neither
};

PolicySettings settings_of(const char* algorithm, Activation activation, bool separate_value) {
  PolicySettings policy;
  policy.name = "agent";
  policy.algorithm = AlgorithmChoice::named(algorithm);
  auto& s = policy.algorithm.as<OnPolicySettings>();
  s.normalize_advantage = false;
  s.normalize_value = false;
  s.gamma = 0.97;
  s.gae_lambda = 0.9;
  s.lr = Schedule();
  s.lr.points = {{0.0, 0.0}, {2000.0, 0.02}};  // the rate at step 1000 is 0.01
  s.entropy_coeff = 0.05;
  s.max_grad_norm = 0.02;
  s.adam_epsilon = 1e-4;  // large, so that Adam's step depends on the gradient's scale
  policy.model.fc_dims = {16, 8};
  policy.model.activation = activation;
  policy.model.separate_value = separate_value;
  policy.model.init_method = kTorchDefault;
  policy.model.initial_log_std = -0.3;
  return policy;
}

std::vector<Case> cases() {
  const ActionSpace heads = ActionSpace::discrete({3, 4}), box = ActionSpace::box(2, -1.0f, 1.0f);
  Case a2c{"a2c", heads, true, settings_of("A2C", kRelu, false)};
  Case a2c_steps{"a2c_n_step_gaussian", box, false, settings_of("A2C", kTanh, true)};
  a2c_steps.settings.algorithm.as<OnPolicySettings>().n_step = 3;
  a2c_steps.settings.algorithm.as<OnPolicySettings>().clip_grad_norm = false;
  Case a2c_normal{"a2c_normalized_return", heads, false, settings_of("A2C", kRelu, true)};
  a2c_normal.settings.algorithm.as<OnPolicySettings>().normalize_return = true;
  a2c_normal.settings.algorithm.as<OnPolicySettings>().gae_lambda = 1.0;
  Case warpdrive{
      .name = "a2c_warpdrive", .action = heads, .settings = a2c_normal.settings, .as_warpdrives = true};
  Case ppo{"ppo", heads, true, settings_of("PPO", kTanh, false)};
  ppo.settings.algorithm.as<OnPolicySettings>().normalize_advantage = true;
  ppo.settings.algorithm.as<PpoSettings>().vf_clip_param = 0.1;
  ppo.settings.algorithm.as<PpoSettings>().clip_param.points = {{0.0, 0.2},
                                                                {2000.0, 0.1}};  // 0.15 at step 1000
  ppo.settings.algorithm.as<PpoSettings>().num_minibatches = 3;
  Case ppo_box{"ppo_gaussian", box, false, settings_of("PPO", kTanh, true)};
  ppo_box.settings.algorithm.as<PpoSettings>().num_minibatches = 1;
  Case ppo_squashed{"ppo_squashed_gaussian", box, false, ppo_box.settings};
  ppo_squashed.settings.model.distribution = kSquashedGaussianActions;
  Case ppo_gsde{"ppo_gsde", box, false, ppo_box.settings};
  ppo_gsde.settings.model.distribution = kGsdeActions;
  ppo_gsde.settings.model.noise_every = kSteps;
  Case a2c_gsde{"a2c_gsde", box, false, settings_of("A2C", kTanh, false)};
  a2c_gsde.settings.model.distribution = kGsdeActions;
  Case a2c_gsde_bf16{"a2c_bf16_gsde", box, false, a2c_gsde.settings, kBf16};
  a2c_gsde_bf16.settings.model.fc_dims = {24, 20, 12};
  const auto with_memory = [](PolicySettings settings, const char* type, int sequence_length) {
    settings.model.set_type(type);
    settings.model.sequence_length = sequence_length;
    return settings;
  };
  Case a2c_gru{"a2c_gru", heads, true, with_memory(a2c.settings, "gru", 0)};
  Case ppo_gru{"ppo_gru_short_sequences", box, false, with_memory(ppo_box.settings, "gru", 4)};
  ppo_gru.settings.algorithm.as<PpoSettings>().num_minibatches = 3;
  Case a2c_mingru{"a2c_mingru", heads, true, with_memory(a2c.settings, "mingru", 0)};
  Case ppo_mingru{"ppo_mingru_short_sequences", box, false, with_memory(ppo_box.settings, "mingru", 4)};
  Case ppo_lstm{"ppo_lstm_short_sequences", box, false, with_memory(ppo_box.settings, "lstm", 4)};
  Case a2c_lstm{"a2c_lstm_of_layers", heads, true, with_memory(a2c.settings, "lstm", 0)};
  a2c_lstm.settings.model.fc_dims = {16, 8};
  a2c_lstm.settings.model.activation = kRelu;
  a2c_lstm.settings.model.layer_norm = true;
  // Of 12 steps of 7 replicas x 3 agents, 5; of 3 sequences of 4 steps, 2.
  Case ppo_share{"ppo_share", heads, true, ppo.settings};
  ppo_share.settings.algorithm.as<PpoSettings>().max_rows = 125;
  Case ppo_gru_share{"ppo_gru_share", box, false, ppo_gru.settings};
  ppo_gru_share.settings.algorithm.as<PpoSettings>().max_rows = 168;
  Case a2c_share{"a2c_share", heads, true, a2c.settings};
  a2c_share.settings.algorithm.as<OnPolicySettings>().max_rows = 21;
  Case ppo_kl{"ppo_target_kl", heads, false, settings_of("PPO", kRelu, false)};
  ppo_kl.settings.algorithm.as<PpoSettings>().target_kl = 0.005;
  Case ppo_adaptive{"ppo_adaptive_kl", heads, false, settings_of("PPO", kRelu, false)};
  ppo_adaptive.settings.algorithm.as<OnPolicySettings>().lr = 0.004;
  ppo_adaptive.settings.algorithm.as<PpoSettings>().adaptive_kl = 0.0015;
  Case reinforce{"reinforce", heads, false, settings_of("REINFORCE", kRelu, false)};
  Case reinforce_normal{"reinforce_normalized_return", box, false, settings_of("REINFORCE", kTanh, false)};
  reinforce_normal.settings.algorithm.as<OnPolicySettings>().normalize_return = true;
  Case a2c_bf16{"a2c_bf16", heads, true, settings_of("A2C", kRelu, false), kBf16};
  a2c_bf16.settings.model.fc_dims = {24, 20, 12};  // rows of 20 and 12 are padded
  Case a2c_bf16_tanh{"a2c_bf16_tanh_gaussian", box, false, settings_of("A2C", kTanh, true), kBf16};
  a2c_bf16_tanh.settings.model.fc_dims = {24, 20, 12};
  Case bf16_linear{"a2c_bf16_no_hidden_layer", heads, false, settings_of("A2C", kRelu, true), kBf16};
  bf16_linear.settings.model.fc_dims = {};
  const auto with_norm = [](Case c, const char* name) {
    c.name = name;
    c.settings.model.layer_norm = true;
    return c;
  };
  Case values{"a2c_normalized_value", heads, true, a2c.settings};
  values.settings.algorithm.as<OnPolicySettings>().normalize_value = true;
  Case first_values{"ppo_first_normalized_value", heads, true, ppo.settings};
  first_values.settings.algorithm.as<OnPolicySettings>().normalize_value = true;
  first_values.first_weights = true;
  Case values_box{"ppo_normalized_value_gaussian", box, false, ppo_box.settings};
  values_box.settings.algorithm.as<OnPolicySettings>().normalize_value = true;
  values_box.settings.algorithm.as<OnPolicySettings>().normalize_advantage = true;
  values_box.settings.algorithm.as<PpoSettings>().vf_clip_param = 0.1;
  Case values_gru{"a2c_normalized_value_gru", heads, true, with_memory(values.settings, "gru", 0)};
  Case rewards{"a2c_n_step_normalized_reward", box, false, a2c_steps.settings};
  rewards.settings.algorithm.as<OnPolicySettings>().normalize_reward = true;
  Case rewards_whole{"reinforce_normalized_reward", heads, false, reinforce.settings};
  rewards_whole.settings.algorithm.as<OnPolicySettings>().normalize_reward = true;
  const auto reading = [](const char* name, Case c, std::vector<std::string> reads,
                          std::vector<std::string> critic_reads) {
    c.name = name;
    c.settings.model.separate_value = true;
    c.settings.model.reads = std::move(reads);
    c.settings.model.critic_reads = std::move(critic_reads);
    c.settings.algorithm.as<OnPolicySettings>().normalize_value = true;
    return c;
  };
  Case both{"ppo_normalized_reward_and_value", heads, true, ppo.settings};
  both.settings.algorithm.as<OnPolicySettings>().normalize_value = true;
  both.settings.algorithm.as<OnPolicySettings>().normalize_reward = true;
  const auto waiting = [](Case c, const char* name) {
    c.name = name;
    c.masks = c.waiting = true;
    return c;
  };
  return {waiting(a2c, "a2c_waiting"),
          waiting(ppo, "ppo_waiting"),
          waiting(ppo_kl, "ppo_waiting_target_kl"),
          waiting(reinforce, "reinforce_waiting"),
          reading("ppo_central_normalized_value", ppo, {"observation"}, {"observation", "state"}),
          reading("ppo_agent_id_normalized_value", ppo_box, {"observation", "own", "agent_id"},
                  {"state", "agent_id"}),
          reading("ppo_gru_central_normalized_value", ppo_gru, {"observation", "agent_id"},
                  {"observation", "state", "own"}),
          values,
          values_box,
          values_gru,
          rewards,
          rewards_whole,
          both,
          a2c,
          a2c_steps,
          a2c_normal,
          ppo,
          ppo_box,
          ppo_squashed,
          ppo_gsde,
          a2c_gsde,
          a2c_gsde_bf16,
          ppo_kl,
          ppo_adaptive,
          first_values,
          reinforce,
          reinforce_normal,
          a2c_bf16,
          a2c_bf16_tanh,
          bf16_linear,
          warpdrive,
          a2c_gru,
          ppo_gru,
          a2c_mingru,
          ppo_mingru,
          ppo_lstm,
          a2c_lstm,
          ppo_share,
          ppo_gru_share,
          a2c_share,
          with_norm(a2c, "a2c_layer_norm"),
          with_norm(ppo_box, "ppo_layer_norm_gaussian"),
          with_norm(a2c_bf16, "a2c_bf16_layer_norm"),
          with_norm(a2c_bf16_tanh, "a2c_bf16_layer_norm_tanh_gaussian")};
}

TensorMetadata metadata_of(const Case& c) {
  const ModelSettings& model = c.settings.model;
  const auto& s = c.settings.algorithm.as<OnPolicySettings>();
  const PpoSettings unset;
  const PpoSettings& ppo =
      c.settings.algorithm.is<PpoSettings>() ? c.settings.algorithm.as<PpoSettings>() : unset;
  TensorMetadata metadata = {{"distribution", kContinuousDistributionNames[c.settings.model.distribution]},
                             {"algorithm", c.settings.algorithm.is<A2cSettings>()   ? "a2c"
                                           : c.settings.algorithm.is<PpoSettings>() ? "ppo"
                                                                                    : "reinforce"},
                             {"separate", text(model.separate_value)},
                             {"reads", join(model.reads, " ")},
                             {"critic_reads", join(model.read_by(true), " ")},
                             {"precision", c.precision == kBf16 ? "bf16" : "fp32"},
                             {"activation", model.activation == kRelu ? "relu" : "tanh"},
                             {"sequence_length", text(model.state_size() > 0 ? model.sequence_length : -1)},
                             {"gamma", text(s.gamma)},
                             {"gae_lambda", text(s.gae_lambda)},
                             {"n_step", text(s.n_step)},
                             {"time_limit", text(kTimeLimit)},
                             {"vf_loss_coeff", text(value_at(s.vf_loss_coeff, kEnvSteps))},
                             {"entropy_coeff", text(value_at(s.entropy_coeff, kEnvSteps))},
                             {"normalize_advantage", text(s.normalize_advantage)},
                             {"normalize_return", text(s.normalize_return)},
                             {"normalize_value", text(s.normalize_value)},
                             {"normalize_reward", text(s.normalize_reward)},
                             {"max_rows", text(s.max_rows)},
                             {"clip_param", text(value_at(ppo.clip_param, kEnvSteps))},
                             {"vf_clip_param", text(value_at(ppo.vf_clip_param, kEnvSteps))},
                             {"target_kl", text(value_at(ppo.target_kl, kEnvSteps))},
                             {"adaptive_kl", text(ppo.adaptive_kl)}};
  metadata.merge(optimizer_metadata(s, c.action));
  return metadata;
}

void record_statistics(Record& record, const std::string& prefix, const Policy& policy,
                       const Learner& learner) {
  for (const NamedTensor& named : policy.statistics()) record.add(prefix + named.name, named.tensor);
  for (const NamedTensor& named : learner.algorithm().state())
    if (named.name.starts_with("reward_")) record.add(prefix + named.name, named.tensor);
}

class Records : public testing::TestWithParam<Case> {};

TEST_P(Records, AnUpdate) {
  const Case& c = GetParam();
  Spec spec = spec_of(c.action, c.masks);
  std::vector<std::string> reads = c.settings.model.reads;
  reads.insert(reads.end(), c.settings.model.critic_reads.begin(), c.settings.model.critic_reads.end());
  if (reads.size() > 1)
    spec.streams = {{"state", StreamSpec::kReplica, {5}}, {"own", StreamSpec::kAgent, {2}}};
  Cast cast = Cast::of_roles(spec, {"agent"}, {0});
  cast.policies[0].state_size = c.settings.model.state_size();
  cast.policies[0].reads = reads;
  Trajectory trajectory({spec,
                         cast,
                         kSteps,
                         kEnvs,
                         {},
                         {c.precision == kBf16 ? ObservationType::kBfloat16 : ObservationType::kFloat32}});
  PolicyBuffers& buffers = trajectory.policies()[0];
  Draws draws(8);
  fill_trajectory(draws, trajectory, c.as_warpdrives);
  if (c.waiting) {
    const at::Tensor waits = buffers.action_mask.view({-1, 7}).slice(0, 0, {}, 2);  // [rows, 3 + 4 choices]
    waits.fill_(0);
    waits.select(1, 1).fill_(1);
    waits.select(1, 3).fill_(1);
  }
  for (std::size_t k = 0; k < spec.streams.size(); ++k)
    fill(buffers.stream_rows[k], draws.uniforms(buffers.stream_rows[k].numel(), -2.0f, 2.0f));
  Policy policy = c.first_weights ? Policy(buffers, c.settings, 0, kSeed, kChunkRows, {}, c.precision)
                                  : Policy(buffers, c.settings.model, 0, kSeed, kChunkRows, {}, c.precision);
  for (const NamedTensor& p : policy.named_parameters())
    if (p.name.find(".norm.") != std::string::npos)
      p.tensor.add_(at::tensor(draws.uniforms(p.tensor.numel(), -0.5f, 0.5f)));
  policy.refresh_shadow();
  if (c.settings.algorithm->traits().normalizes_value && !c.first_weights) {
    policy.normalize_values();
    policy.merge_value_moments(at::tensor({40.0, 60.0, 300.0}, at::kDouble));  // as if it had been trained
  }
  for (int t = 0; t < kSteps; ++t)
    policy.act(buffers, t, {.seed = kSeed, .step = static_cast<std::uint64_t>(t)});
  policy.evaluate(buffers, kSteps);

  Record record;
  record.add("before.", policy, policy.parameters());
  Learner learner({&policy, 1}, trajectory, 0, c.settings, kSeed);
  for (const NamedTensor& named : learner.algorithm().state()) {
    if (named.name == "reward_sums")
      named.tensor.copy_(at::tensor(draws.uniforms(kEnvs * kAgents, -3.0f, 3.0f)).view({kEnvs, kAgents}));
    if (named.name == "reward_moments") named.tensor.copy_(at::tensor({30.0, 0.5, 4.0}, at::kDouble));
  }
  record_statistics(record, "statistics_before.", policy, learner);
  prepare({&learner, 1});
  record_rollout(record, trajectory);
  if (c.settings.algorithm.is<PpoSettings>() || c.settings.algorithm->traits().row_limit > 0)
    record_order(record, spec, *c.settings.algorithm, policy.sequences(kSteps));
  for (std::size_t k = 0; k < spec.streams.size(); ++k)
    record.add("stream." + spec.streams[k].name, buffers.stream_rows[k]);
  if (buffers.state.defined()) {
    record.add("state", buffers.state);
    record.add("restarted", buffers.restarted);
  }

  LossSettings a2c;
  a2c.value_coeff = 0.7f;
  a2c.entropy_coeff = 0.05f;
  a2c.value_norm = policy.value_norm();
  Minibatches whole(buffers, kSteps, kEnvs, 1, 0, policy.sequences(kSteps));
  whole.shuffle(kSeed, clock_then().time(), 0);
  const at::Tensor sums = PolicyGradient(policy).accumulate(whole.gather(0), a2c).clone();
  record.add("sums", sums);
  record.add("gradient.", policy, policy.gradients());

  ASSERT_TRUE(update({&learner, 1}, clock_then()));
  record.add("after.", policy, policy.parameters());
  record_statistics(record, "statistics_after.", policy, learner);
  record_metrics(record, "", learner);
  record.write(record_folder() / (c.name + ".safetensors"), metadata_of(c));
}

INSTANTIATE_TEST_SUITE_P(Updates, Records, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wd
