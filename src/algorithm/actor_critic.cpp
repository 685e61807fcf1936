// actor_critic.cpp: the steps of an update, and the loss of critics.
#include "wd/actor_critic.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "src/algorithm/measure.h"
#include "src/base/join.h"
#include "wd/error.h"
#include "wd/kernels/td.h"
#include "wd/rollout_algorithm.h"

namespace wd {

namespace {

// Sums of each critic, one critic after another.
SumNames critic_sums(int critics) {
  SumNames sums;
  for (int i = 0; i < critics; ++i)
    sums.names.insert(sums.names.end(), {i == 0 ? nullptr : "the critic's count", "the critics' loss",
                                         "the value of a critic", "the critics' target"});
  return sums;
}

SumNames actor_sums() {
  return {.names = {nullptr, "the actor's loss", "the value of the actor's action", "its log-probability",
                    "the highest entropy"}};
}

// Gradients of what each critic computes.
RowMemory gradients_of_critics(const Policy& policy, const char* name = "value_grad") {
  const ActionLayout& layout = policy.action_layout();
  const CriticShape& shape = policy.critic_shape();
  return {name, layout.components > 0 ? shape.quantiles : layout.columns(), true, shape.count};
}

// What the actor's pass needs: these, and of continuous actions gradients by the action that each critic
// reads.
std::vector<RowMemory> memory_of_actor(const Policy& policy) {
  const ActionLayout& layout = policy.action_layout();
  std::vector<RowMemory> rows = {
      gradients_of_critics(policy), {"counts", 1}, {"output_grad", layout.columns(), true}};
  if (layout.components > 0)
    rows.push_back({"action_grad", layout.components, false, policy.critic_shape().count});
  return rows;
}

// 1 until so many environment steps have been played, then 0.
Schedule until(std::int64_t steps) {
  if (steps == 0) return 0.0;
  Schedule schedule;
  const auto end = static_cast<double>(steps);
  schedule.points = {{end - 1.0, 1.0}, {end, 0.0}};
  return schedule;
}

ActionLayout layout_of_critics(const ActionLayout& of_actor) {
  if (of_actor.components == 0) return of_actor;
  ActionLayout layout;
  layout.num_heads = 1;
  layout.head_size[0] = 1;
  return layout;
}

// With states of all critics, that of one.
NetworkInput of_critic(NetworkInput input, int i) {
  if (input.state.defined()) input.state = input.state[i];
  return input;
}

std::vector<NamedTensor> prefixed(const char* prefix, std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.name = concat(prefix, named.name);
  return tensors;
}

}  // namespace

ActorCritic::ActorCritic(const AlgorithmContext& context, const ActorCriticSettings& settings,
                         const Needs& needs, const Schedule& deviation, const Schedule& damping)
    : ReplayAlgorithm(context, settings,
                      {.model = *context.policy().critics(),
                       .sums = critic_sums(context.policy().critic_shape().count),
                       .owner = concat("the critics of policy '", context.policy().name(), "'"),
                       .named = context.policy().critics()->named_parameters(),
                       .lr = settings.critic_lr,
                       .epsilon = until(settings.random_steps),
                       .deviation = deviation,
                       .damping = damping}),
      settings_(settings),
      target_critics_(policy_.critics()->like()),
      actor_(policy_.model(), actor_sums(), settings.adam_epsilon, context.group,
             concat("policy '", policy_.name(), "'"), policy_.named_parameters()),
      critic_lanes_(joined<ModelUse>({{policy_.critics(), ModelUse::kLearns, true},
                                      {&target_critics_, ModelUse::kForward, true}},
                                     needs.for_targets),
                    policy_.critic_shape().count * kNumTdSums,
                    joined<RowMemory>(
                        {gradients_of_critics(policy_),
                         {"target", needs.targets > 0 ? needs.targets : policy_.critic_shape().quantiles}},
                        joined(needs.rows, memory_of_next({{"next_actor", policy_.action_layout().columns()},
                                                           {"next_log_prob", 1},
                                                           gradients_of_critics(policy_, "next_critic")}))),
                    device_),
      actor_lanes_(
          {{&policy_.model(), ModelUse::kLearns}, {policy_.critics(), ModelUse::kInputs, !needs.one_critic}},
          kNumActorSums, joined(memory_of_actor(policy_), needs.rows), device_),
      critic_burn_in_lanes_({{policy_.critics(), ModelUse::kForward}}, 0, {}, device_),
      critic_states_(has_state() ? at::zeros({policy_.critic_shape().count + 1, replay_.sequences(),
                                              policy_.critics()->network(0).state_size()},
                                             policy_.parameters().options())
                                 : at::Tensor()),
      rate_(std::array{&settings.lr}, device_),
      critic_layout_(layout_of_critics(policy_.action_layout())),
      no_choice_(at::zeros({replay_.rows()}, policy_.parameters().options().dtype(at::kInt))),
      num_targets_(needs.targets) {
  WD_CHECK(policy_.critic_shape().count <= kMaxCritics, "an algorithm has at most ", kMaxCritics, " critics");
  actor_.stops_with(learned_);
  learned_.stops_with(actor_);
}

void ActorCritic::begin_update(const TrainingClock& clock) {
  ReplayAlgorithm::begin_update(clock);
  rate_.update(clock);
  actor_.begin_update(rate_.value(0), max_grad_norm(), nullptr, failed_);
  on_actor_ = false;
}

at::Tensor ActorCritic::accumulate(const ReplayBatch& batch, const std::function<bool()>& should_stop) {
  if (batch.burn_in > 0) burn_in_critics(batch);
  return run(
      critic_lanes_, batch,
      [&](Lane& lane, std::int64_t begin, std::int64_t end) { critic_pass(lane, batch, begin, end); },
      should_stop);
}

void ActorCritic::begin_step(const TrainingClock& clock, const std::function<bool()>& should_stop) {
  if (!on_actor_) return ReplayAlgorithm::begin_step(clock, should_stop);
  const auto stopping = [&] { return should_stop ? std::optional(should_stop()) : std::nullopt; };
  if (batch_->burn_in > 0) burn_in_critics(*batch_);
  const at::Tensor totals = run(
      actor_lanes_, *batch_,
      [&](Lane& lane, std::int64_t begin, std::int64_t end) { actor_pass(lane, *batch_, begin, end); },
      should_stop);
  begin_actor_step(totals, stopping());
  actor_.begin_step(totals, stopping());
}

bool ActorCritic::end_step() {
  if (!on_actor_) {
    if (!learned_.end_step()) return false;
    on_actor_ = moves_actor();
    if (!on_actor_) ++update_;
    return true;
  }
  if (!end_actor_step() || !actor_.end_step()) return false;
  follow(static_cast<float>(settings_.tau));
  on_actor_ = false;
  ++update_;
  return true;
}

NetworkInput ActorCritic::critics_input(const ReplayBatch& batch, const at::Tensor& action,
                                        std::int64_t begin, std::int64_t end, bool next) const {
  NetworkInput input =
      next ? next_input(batch, begin, end, true) : policy_.critic_input(batch.now, begin, end);
  if (is_continuous()) input.parts[policy_.action_part()] = action;
  if (batch.steps == 0) return input;
  const std::int64_t length = batch.now.sequences.length, count = policy_.critic_shape().count;
  input.state = critic_states_.slice(1, begin / length, end / length);
  if (next) input.state = input.state.narrow(0, count, 1).expand({count, -1, -1});
  return input;
}

// The critics' states behind the first steps of their windows, where they are computed with what was played.
void ActorCritic::burn_in_critics(const ReplayBatch& batch) {
  const std::int64_t length = batch.now.sequences.length, count = policy_.critic_shape().count;
  run(critic_burn_in_lanes_, batch, [&](Lane& lane, std::int64_t begin, std::int64_t end) {
    NetworkInput input = window_input(batch, begin, end, batch.burn_in, true);
    if (is_continuous())
      input.parts[policy_.action_part()] =
          batch.all.action.narrow(0, batch.rows_of_all(begin), input.restarted.size(0));
    const at::Tensor states = critic_states_.slice(1, begin / length, end / length);
    input.state = states[count];
    for (std::int64_t i = 0; i < count; ++i) {
      const Network& network = policy_.critics()->network(static_cast<std::size_t>(i));
      input.next_state = states[i];
      network.forward(input, lane.of(network));
    }
  });
}

CriticsOutput ActorCritic::criticize(const Model& critics, const Lane& lane, const NetworkInput& input,
                                     int count) const {
  CriticsOutput output;
  output.count = std::min(count, policy_.critic_shape().count);
  output.quantiles = is_continuous() ? policy_.critic_shape().quantiles : 1;
  const Network* const all = lane.together(critics);
  for (int i = 0; i < output.count; ++i) {
    const Network& network = all != nullptr ? *all : critics.network(static_cast<std::size_t>(i));
    if (all == nullptr || i == 0) network.forward(of_critic(input, i), lane.of(network));
    const at::Tensor& values = lane.of(network).output;
    output.value[i] = rows_of<const float>(all != nullptr ? values[i] : values);
  }
  return output;
}

CriticsOutput ActorCritic::criticize_next(const ReplayBatch& batch, const Lane& lane,
                                          const at::Tensor& action, std::int64_t begin,
                                          std::int64_t end) const {
  CriticsOutput output = criticize(target_critics_, lane, critics_input(batch, action, begin, end, true));
  for (int i = 0; i < output.count && batch.steps > 0; ++i) {
    const at::Tensor& values = lane.of(target_critics_.network(static_cast<std::size_t>(i))).output;
    output.value[i] = rows_of<const float>(at_next(batch, begin, end, values, lane, "next_critic", i));
  }
  return output;
}

void ActorCritic::go_back(Lane& lane, const NetworkInput& input, std::int64_t n, int count,
                          bool by_action) const {
  const auto back = [&](const Network& network, const at::Tensor& value_grad, const at::Tensor& action_grad,
                        int i) {
    std::vector<at::Tensor> part_grads;
    if (by_action) {
      part_grads.resize(policy_.action_part() + 1);
      part_grads.back() = action_grad;
    }
    network.backward(of_critic(input, i), value_grad.narrow(-2, 0, n), lane.of(network),
                     lane.gradient(network), part_grads);
  };
  const Model& critics = *policy_.critics();
  const auto grad_of = [&](int i) { return by_action ? lane.rows("action_grad", i) : at::Tensor(); };
  if (const Network* const all = lane.together(critics))
    return back(*all, lane.all_rows("value_grad"), by_action ? lane.all_rows("action_grad") : at::Tensor(),
                0);
  for (int i = 0; i < count; ++i)
    back(critics.network(static_cast<std::size_t>(i)), lane.rows("value_grad", i), grad_of(i), i);
}

ActorDraw ActorCritic::draw(int purpose, const ReplayBatch& batch, std::int64_t begin,
                            std::int64_t end) const {
  constexpr int kPurposes = 3;
  ActorDraw draw{.key = RandomKey::of(seed_, RandomUse::kActor),
                 .time = time_,
                 .update = static_cast<int>(update_),
                 .purpose = kPurposes * index_ + purpose,
                 .first_row = group_.rank() * replay_.rows() + begin};
  if (batch.steps == 0) return draw;
  draw.sequences = (end - begin) / batch.now.sequences.length;
  draw.steps = purpose == kForTargets ? batch.steps : batch.now.sequences.length;
  if (purpose == kForTargets) draw.first_row = batch.rows_of_all(draw.first_row);
  return draw;
}

ActorActionsArgs ActorCritic::actions_of(const at::Tensor& output, const ActorDraw& draw,
                                         const at::Tensor& action) const {
  const ActionLayout& layout = policy_.action_layout();
  return {
      .rows = {action.size(0), layout.distribution, layout.components, rows_of<const float>(output), draw},
      .action = rows_of<float>(action)};
}

void ActorCritic::targets_of(const Network& actor, Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                             std::int64_t end, const Noise& noise, const float* alpha) const {
  const Queue queue = current_queue(device_);
  const std::int64_t n = end - begin;
  actor.forward(next_input(batch, begin, end), lane.of(actor));
  const at::Tensor action = lane.rows("action").narrow(0, 0, batch.rows_of_all(n));
  ActorActionsArgs actions = actions_of(lane.of(actor).output, draw(kForTargets, batch, begin, end), action);
  actions.noise = static_cast<float>(noise.deviation);
  actions.noise_clip = static_cast<float>(noise.clip);
  if (alpha != nullptr) actions.log_prob = at_row<float>(lane.rows("log_prob"));
  actor_actions(queue, actions);
  const at::Tensor log_prob = alpha != nullptr
                                  ? at_next(batch, begin, end, lane.rows("log_prob"), lane, "next_log_prob")
                                  : at::Tensor();
  critic_target(queue, {.rows = n,
                        .critics = criticize_next(batch, lane, action, begin, end),
                        .log_prob = at_row<const float>(log_prob),
                        .alpha = alpha,
                        .reward = at_row<const float>(batch.reward, begin),
                        .discount = at_row<const float>(batch.discount, begin),
                        .target = rows_of<float>(lane.rows("target"))});
}

void ActorCritic::critic_pass(Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                              std::int64_t end) const {
  targets(lane, batch, begin, end);
  const std::int64_t n = end - begin;
  const at::Tensor action = batch.now.action.slice(0, begin, end);
  const NetworkInput input = critics_input(batch, action, begin, end);
  const CriticsOutput values = criticize(*policy_.critics(), lane, input);
  const bool together = lane.together(*policy_.critics()) != nullptr;
  for (int i = 0; i < (together ? 1 : values.count); ++i) {
    const at::Tensor& grad = lane.rows("value_grad", i);
    const ValueLoss loss{.layout = critic_layout_,
                         .output = values.value[i],
                         .action = at_row<const std::int32_t>(is_continuous() ? no_choice_ : action),
                         .target = rows_of<const float>(lane.rows("target")),
                         .weight = at_row<const float>(batch.weight, begin),
                         .huber = static_cast<float>(settings_.huber),
                         .output_grad = rows_of<float>(grad),
                         .error = i == 0 ? at_row<float>(error_, begin) : nullptr,
                         .row_sums = at_row<float>(lane.row_sums()) + std::int64_t{i} * kNumTdSums * n};
    td_loss(current_queue(device_), {.rows = n,
                                     .quantiles = values.quantiles,
                                     .targets = num_targets_,
                                     .loss = loss,
                                     .cql = is_continuous() ? 0.0f : conservative(),
                                     .legal = legal_of(batch.now, begin),
                                     .networks = together ? values.count : 1,
                                     .network_rows = grad.size(0)});
  }
  // Of continuous actions, the part of the penalty that pulls the value of what was played up.
  if (is_continuous() && conservative() > 0.0f)
    for (int i = 0; i < values.count; ++i)
      penalize(batch, begin, -conservative(), true, lane.rows("value_grad", i).narrow(0, 0, n));
  go_back(lane, input, n, values.count, false);
  if (is_continuous() && conservative() > 0.0f) push_down(lane, batch, begin, end);
}

// The gradient of scale * the values of a critic for the rows of `grad`, or that plus what is there.
void ActorCritic::penalize(const ReplayBatch& batch, std::int64_t begin, float scale, bool adds,
                           const at::Tensor& grad) const {
  value_penalty(current_queue(device_), {.rows = grad.size(0),
                                         .quantiles = static_cast<int>(grad.size(1)),
                                         .weight = at_row<const float>(batch.weight, begin),
                                         .scale = scale,
                                         .adds = adds,
                                         .grad = rows_of<float>(grad)});
}

// Adds the gradient of the other part of the penalty: weight * conservative() * the value of an action that
// the actor draws (Kumar et al. 2020, arXiv 2006.04779, eq. 2 with the actor as mu, through which no gradient
// flows).
void ActorCritic::push_down(Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                            std::int64_t end) const {
  const std::int64_t n = end - begin;
  const Network& actor = policy_.model().network(0);
  actor.forward(policy_.input(batch.now, begin, end), lane.of(actor));
  const at::Tensor action = lane.rows("action").narrow(0, 0, n);
  actor_actions(current_queue(device_),
                actions_of(lane.of(actor).output, draw(kForPenalty, batch, begin, end), action));
  const NetworkInput input = critics_input(batch, action, begin, end);
  const CriticsOutput values = criticize(*policy_.critics(), lane, input);
  for (int i = 0; i < values.count; ++i)
    penalize(batch, begin, conservative(), false, lane.rows("value_grad", i).narrow(0, 0, n));
  go_back(lane, input, n, values.count, false);
}

void ActorCritic::learn_from_critics(Lane& lane, const ReplayBatch& batch, std::int64_t begin,
                                     std::int64_t end, int count, const float* alpha,
                                     const ActorLoss& compute) const {
  const Queue queue = current_queue(device_);
  const std::int64_t n = end - begin;
  const PolicyPass pass = policy_.forward(lane, batch.now, begin, end);
  const at::Tensor action = lane.rows("action").narrow(0, 0, n);
  ActorActionsArgs actions = actions_of(pass.actor->output, draw(kForActor, batch, begin, end), action);
  if (alpha != nullptr) actions.log_prob = at_row<float>(lane.rows("log_prob"));
  actor_actions(queue, actions);

  const NetworkInput input = critics_input(batch, action, begin, end);
  ActorLossArgs loss;
  loss.rows = n;
  loss.critics = criticize(*policy_.critics(), lane, input, count);
  loss.log_prob = actions.log_prob;
  loss.alpha = alpha;
  loss.weight = at_row<const float>(batch.weight, begin);
  for (int i = 0; i < loss.critics.count; ++i)
    loss.value_grad[i] = rows_of<float>(lane.rows("value_grad", i));
  loss.counts = at_row<float>(lane.rows("counts"));
  loss.row_sums = at_row<float>(lane.row_sums());
  compute(queue, loss);

  go_back(lane, input, n, loss.critics.count, true);
  const at::Tensor& action_grads = lane.all_rows("action_grad");
  const at::Tensor output_grad = lane.rows("output_grad").narrow(0, 0, n);
  actor_gradient(queue, {.rows = actions.rows,
                         .action_grad = rows_of<const float>(action_grads[0]),
                         .action_grad_step = action_grads.stride(0),
                         .terms = loss.critics.count,
                         .log_prob_weight = alpha,
                         .weight = loss.counts,
                         .output_grad = rows_of<float>(output_grad)});
  policy_.backward(lane, pass, output_grad, {}, {});
}

void ActorCritic::check() const {
  learned_.check();
  actor_.check();
}

std::vector<NamedTensor> ActorCritic::state() const {
  std::vector<NamedTensor> all =
      joined(prefixed("actor.", actor_.state()), prefixed("critics.", learned_.state()));
  all.push_back({"target_critics", target_critics_.parameters()});
  return joined(std::move(all), replay_.state());
}

void ActorCritic::state_changed() {
  target_critics_.refresh_shadow();
  replay_.state_changed();
}

std::vector<std::pair<std::string, double>> ActorCritic::metrics() const {
  const StepRecord of_actor = actor_.record(), of_critics = learned_.record();
  const std::vector<double> actor = actor_.sums(), critics = learned_.sums();
  double loss = 0.0;
  for (int i = 0; i < policy_.critic_shape().count; ++i)
    loss += critics[static_cast<std::size_t>(i) * kNumTdSums + kTdLoss];
  std::vector<std::pair<std::string, double>> all = {
      {"policy_loss", ratio(actor[kActorLoss], actor[kActorCount])},
      {"value_loss", ratio(loss, critics[kTdCount])},
      {"value_mean", ratio(critics[kTdValue], critics[kTdCount])},
      {"return_mean", ratio(critics[kTdTarget], critics[kTdCount])},
      {"grad_norm", ratio(of_actor.norm_sum, of_actor.steps)},
      {"critic_grad_norm", ratio(of_critics.norm_sum, of_critics.steps)},
      {"epsilon", exploration_.epsilon()},
      {"learning_rate", rate_.value().cpu()[0].item<double>()},
      {"updates", of_critics.steps},
      {"empty_minibatches", of_critics.empty},
      {"critics_gap", critics_gap()},
      {"update_ratio", actor_.step_ratio()},
      {"critic_update_ratio", learned_.step_ratio()},
      {"dormant_share", dormant_share_of_policy()},
      {"saturated_share", saturated_share_of_policy()},
      {"critic_dormant_share", dormant_share_of_critics()}};
  return joined(std::move(all), batch_metrics());
}

std::string ActorCritic::warning_of(double paid) const {
  return ReplayAlgorithm::warning_of(mean_of_sum(kTdValue), mean_of_sum(kTdTarget), paid);
}

// Of the critics, for rows of the last batch.
double ActorCritic::dormant_share_of_critics() const {
  if (updates() == 0 || has_state()) return std::nan("");
  const Batch& batch = batch_->now;
  const std::int64_t rows = sampled_rows(replay_.rows(), replay_.agents(), group_);
  const NetworkInput input = critics_input(*batch_, batch.action.narrow(0, 0, rows), 0, rows);
  std::vector<Probe> probes;
  for (const auto& critic : policy_.critics()->networks()) probes.push_back({critic.get(), input});
  return dormant_share(probes, batch.mask, rows, group_);
}

double ActorCritic::critics_gap() const {
  if (updates() == 0 || policy_.critic_shape().count == 1 || has_state()) return std::nan("");
  const Batch& batch = batch_->now;
  const std::int64_t rows = sampled_rows(replay_.rows(), replay_.agents(), group_);
  const at::Tensor values = played_values(batch, rows);
  return mean_of(std::get<0>(values.max(0)) - std::get<0>(values.min(0)), batch.mask.narrow(0, 0, rows),
                 group_);
}

at::Tensor ActorCritic::played_values(const Batch& batch, std::int64_t rows) const {
  if (has_state()) return {};  // nobody knows that of the critics there
  const at::Tensor action = batch.action.narrow(0, 0, rows);
  NetworkInput input = policy_.critic_input(batch, 0, rows);
  if (is_continuous()) input.parts[policy_.action_part()] = action;
  std::vector<at::Tensor> values;
  for (const auto& critic : policy_.critics()->networks()) {
    const at::Tensor output =
        run_once({critic.get(), input}, rows)->output.narrow(0, 0, rows).cpu().to(at::kDouble);
    values.push_back(is_continuous() ? output.mean(1)
                                     : taken_values(output, action.cpu(), policy_.action_layout()));
  }
  return at::stack(values);
}

// "actor.gradient" is the actor's, "gradient" the critics'.
void ActorCritic::poison_next(const std::string& tensor) {
  constexpr std::string_view kOfActor = "actor.";
  if (tensor.starts_with(kOfActor)) return actor_.poison_next(tensor.substr(kOfActor.size()));
  learned_.poison_next(tensor);
}

double ActorCritic::mean_entropy() const {
  const std::vector<double> sums = actor_.sums();
  return -ratio(sums[kActorLogProb], sums[kActorCount]);
}

ActorCriticSettings::ActorCriticSettings() {
  clip_grad_norm = false;
  replay.buffer_size = 1'000'000;
  replay.batch_size = 256;
  replay.replay_ratio = 256;
}

void ActorCriticSettings::describe(Fields& field) {
  describe_lr(field, "learning rate of the actor's Adam");
  field("critic_lr", critic_lr, {0, 10}, "learning rate of the critics' Adam");
  field("gamma", gamma, {0, 1}, "discount per step");
  field("reward_scale", reward_scale, above(0, 1e9), "rewards are multiplied by it before learning");
  replay.describe(field);
  field("random_steps", random_steps, {0, 1e12},
        "environment steps at the beginning of training whose actions are uniform draws");
  field("tau", tau, above(0, 1), "how far targets move towards the networks, each time that the actor moves");
  field("policy_delay", policy_delay, {1, 64}, "updates of the critics for one of the actor");
  field(
      "huber", huber, {0, 1e9},
      "critics' errors beyond it count linearly; 0: all are squared; of model.quantiles above 1, it is that "
      "of their loss, and 0 its limit for small errors");
  describe_optimizer(field, "limit the norm of the gradients of the actor and of the critics");
}

void ActorCriticSettings::describe_critics(Fields& field, int& num_critics) {
  field("num_critics", num_critics, {1, kMaxCritics}, "critics, of whose values the lowest counts");
}

double ActorCriticSettings::bytes(const WorkerShape& worker) const {
  const AlgorithmTraits its = traits();
  const std::vector<MakeNetwork> networks =
      make_critics(worker.layout, worker.model, {its.critics, worker.model.quantiles}, {}, worker.precision);
  return model_bytes(networks, 0, worker.precision, false) +
         (has_target_actor() ? bytes_of_target(worker) : 0.0) + OffPolicySettings::bytes(worker) +
         Replay::rows(worker, replay) * sizeof(std::int32_t) +
         (its.critics + 1.0) * Replay::rows(worker, replay) * worker.model.state_size() * sizeof(float) /
             static_cast<double>(worker.model.replayed_together());
}

}  // namespace wd
