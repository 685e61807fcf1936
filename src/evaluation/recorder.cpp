// recorder.cpp: copies states, rewards, actions, values and probabilities of each step to the host.
#include "src/evaluation/recorder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "src/policy/impl.h"
#include "wd/detail/advance.h"

namespace wd {

namespace {

// Adds the numbers of one moment.
void append(Series& series, const auto& numbers) {
  series.width = static_cast<int>(numbers.size());
  series.values.insert(series.values.end(), numbers.begin(), numbers.end());
}

// Not PolicyBuffers::active: agents that are paid after leaving count, and are out of the game.
void add_in_game(EpisodeRecord& episode, const std::vector<std::uint8_t>& in_game, const Spec& spec) {
  std::span rest(in_game);
  for (std::size_t r = 0; r < episode.roles.size(); ++r) {
    const auto count = static_cast<std::size_t>(spec.roles[r].count);
    append(episode.roles[r].in_game, rest.first(count));
    rest = rest.subspan(count);
  }
}

// The actions as the environment receives them, [agents, width].
at::Tensor received(const PolicyBuffers& buffers, at::Tensor action) {
  if (buffers.unit == ActionUnit::kEnvironment) return action;
  auto numbers = action.accessor<float, 2>();
  for (std::int64_t i = 0; i < numbers.size(0); ++i)
    for (std::int64_t k = 0; k < numbers.size(1); ++k)
      numbers[i][k] =
          detail::within_bounds(numbers[i][k], buffers.action_space.bounds[static_cast<std::size_t>(k)]);
  return action;
}

// The first columns of the actor's outputs: logits or values of choices, or means, [agents, columns].
at::Tensor outputs(const PolicyBuffers& buffers, std::int64_t replica, int columns, at::ScalarType type) {
  const std::int64_t A = buffers.num_agents;
  const at::Tensor rows = buffers.activations->actor->output.narrow(0, replica * A, A);
  return rows.narrow(1, 0, columns).to(type).cpu();
}

// The probabilities of all choices, head after head, [agents, choices].
at::Tensor probabilities(const PolicyBuffers& buffers, std::int64_t replica, bool of_best) {
  at::Tensor logits = outputs(buffers, replica, buffers.action_space.choices(), at::kDouble);
  if (buffers.action_mask.defined()) {
    logits = logits.masked_fill(buffers.action_mask[0][replica].cpu().eq(0),
                                -std::numeric_limits<double>::infinity());
  }
  std::vector<at::Tensor> heads;
  std::int64_t first = 0;
  for (const int n : buffers.action_space.heads) {
    const at::Tensor head = logits.narrow(1, first, n);
    // Without exploration the choice of the highest value is certain.
    heads.push_back(of_best ? at::one_hot(head.argmax(1), n).to(at::kDouble) : head.softmax(1));
    first += n;
  }
  return at::cat(heads, 1);
}

constexpr std::size_t kMostSmallPictures = 600;

// Each pixel is the mean of a square of them, so that the picture fits into 320 x 240.
Picture shrunk(const Picture& picture) {
  constexpr int kWidth = 320, kHeight = 240;
  const int wanted =
      std::max((picture.width + kWidth - 1) / kWidth, (picture.height + kHeight - 1) / kHeight);
  const int by = std::min({wanted, picture.width, picture.height});  // a line of pixels stays one
  Picture small{picture.width / by, picture.height / by, {}};
  for (int y = 0; y < small.height; ++y) {
    for (int x = 0; x < 3 * small.width; ++x) {
      int sum = 0;
      for (int k = 0; k < by * by; ++k) {
        const int row = y * by + k / by, column = x / 3 * by + k % by;
        sum += static_cast<unsigned char>(
            picture.pixels[static_cast<std::size_t>(3 * (row * picture.width + column) + x % 3)]);
      }
      small.pixels += static_cast<char>(sum / (by * by));
    }
  }
  return small;
}

}  // namespace

std::vector<StateField> recorded_fields(const StateLayout& layout) {
  std::vector<StateField> fields;
  std::ranges::copy_if(layout.fields, std::back_inserter(fields),
                       [](const StateField& field) { return !field.scratch; });
  return fields;
}

void Recorder::start(Game& game, const std::vector<Policy*>& policies) {
  policies_ = policies;
  std::vector<PolicyBuffers>& buffers = game.trajectory().policies();
  shares_.clear();
  int first = 0;
  for (const Role& role : game.replicas().spec().roles) {
    std::vector<Share>& shares = shares_.emplace_back();
    for (std::size_t p = 0; p < buffers.size(); ++p) {
      std::vector<std::int64_t> slots, numbers;
      for (std::size_t slot = 0; slot < buffers[p].agent.size(); ++slot) {
        const int number = buffers[p].agent[slot] - first;
        if (number < 0 || number >= role.count) continue;
        slots.push_back(static_cast<std::int64_t>(slot));
        numbers.push_back(number);
      }
      if (!slots.empty()) shares.push_back({p, at::tensor(slots), at::tensor(numbers)});
    }
    first += role.count;
  }
  const auto E = static_cast<std::size_t>(game.replicas().num_envs());
  EpisodeRecord empty;
  empty.state.resize(recorded_fields(game.replicas().layout()).size());
  empty.roles.resize(shares_.size());
  episodes_.assign(E, empty);
  over_.assign(E, false);
  for (std::size_t p = 0; p < policies.size(); ++p)
    if (policies[p] != nullptr) policies[p]->keep_activations(buffers[p]);
}

void Recorder::value_actions(Game& game) const {
  for (std::size_t p = 0; p < policies_.size(); ++p)
    if (policies_[p] != nullptr && policies_[p]->critics() != nullptr)
      policies_[p]->evaluate(game.trajectory().policies()[p], 0);
}

void Recorder::add_step(EpisodeRecord& episode, const Trajectory& trajectory, std::int64_t replica) const {
  const Spec& spec = trajectory.spec();
  for (std::size_t r = 0; r < episode.roles.size(); ++r) {
    RoleRecord& role = episode.roles[r];
    // Adds numbers(policy, buffers) [agents, ...] of those shares for which it returns any.
    const auto add = [&](Series& series, const auto& numbers) {
      at::Tensor all;
      for (const Share& share : shares_[r]) {
        const at::Tensor own = numbers(policies_[share.policy], trajectory.policies()[share.policy]);
        if (!own.defined()) continue;
        const at::Tensor rows = own.to(at::kDouble).cpu().reshape({own.size(0), -1});
        if (!all.defined()) all = at::full({spec.roles[r].count, rows.size(1)}, std::nan(""), rows.options());
        all.index_copy_(0, share.numbers, rows.index_select(0, share.slots));
      }
      if (all.defined()) append(series, std::span(all.const_data_ptr<double>(), std::size_t(all.numel())));
    };
    const auto of_box = [&](double deviations) {
      return [=](Policy* policy, const PolicyBuffers& buffers) {
        if (policy == nullptr || !buffers.action_space.is_continuous()) return at::Tensor();
        at::Tensor number = outputs(buffers, replica, buffers.action_space.width(), at::kFloat).clone();
        const std::int64_t A = buffers.num_agents;
        if (deviations != 0.0) number += deviations * policy->deviations(buffers, replica * A, A);
        return received(buffers, policy->head().squashes ? number.tanh() : number);
      };
    };
    add(role.reward, [&](Policy*, const PolicyBuffers& buffers) { return buffers.reward[0][replica]; });
    add(role.action, [&](Policy*, const PolicyBuffers& buffers) {
      return received(buffers, buffers.action[0][replica].cpu().clone());
    });
    add(role.value, [&](Policy* policy, const PolicyBuffers& buffers) {
      return policy == nullptr ? at::Tensor() : buffers.value[0][replica];
    });
    add(role.probability, [&](Policy* policy, const PolicyBuffers& buffers) {
      if (policy == nullptr || buffers.action_space.is_continuous()) return at::Tensor();
      return probabilities(buffers, replica, policy->head().value == Head::kOfBestChoice);
    });
    add(role.mean, of_box(0.0));
    add(role.below, of_box(-1.0));
    add(role.above, of_box(1.0));
  }
  ++episode.steps;
}

void Recorder::add_frame(const Game& game, bool first) {
  const Replicas& replicas = game.replicas();
  const Trajectory& trajectory = game.trajectory();
  const std::vector<StateField> fields = recorded_fields(replicas.layout());
  const at::Tensor blocks = replicas.blocks().cpu();
  const at::Tensor ended =
      first ? at::Tensor() : at::bitwise_or(trajectory.terminated(), trajectory.truncated())[0].cpu();
  for (std::size_t e = 0; e < episodes_.size(); ++e) {
    if (over_[e]) continue;
    EpisodeRecord& episode = episodes_[e];
    const auto replica = static_cast<std::int64_t>(e);
    if (!first) add_step(episode, trajectory, replica);
    if (pictures_ == Pictures::kFull) {
      episode.pictures.push_back(replicas.picture(static_cast<int>(e)));
    } else if (pictures_ == Pictures::kSmall && episode.pictures.size() < kMostSmallPictures) {
      const Picture picture = replicas.picture(static_cast<int>(e));
      if (picture.width > 0 && picture.height > 0) episode.pictures.push_back(shrunk(picture));
    }
    const auto* const block =
        static_cast<const std::byte*>(blocks.const_data_ptr()) + replica * blocks.stride(0);
    for (std::size_t f = 0; f < fields.size(); ++f) append(episode.state[f], read_field(block, fields[f]));
    add_in_game(episode, replicas.in_game(block), replicas.spec());
    const bool ends = !first && ended.const_data_ptr<std::uint8_t>()[e] != 0;
    episode.whole = ends;
    over_[e] = ends || episode.steps >= max_steps_;
  }
}

bool Recorder::is_complete() const {
  return std::ranges::all_of(over_, [](bool over) { return over; });
}

}  // namespace wd
