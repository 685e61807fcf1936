// games.cpp: replicas that are objects of this process, which threads share.
#include <vector>

#include "wd/detail/parallel.h"
#include "wd/error.h"
#include "wd/outside.h"

namespace wd {
namespace {

class Games final : public OutsideReplicas {
 public:
  Games(const Spec& spec, int count, const std::function<std::unique_ptr<OutsideReplica>()>& make)
      : layout_(spec), begun_(static_cast<std::size_t>(count)) {
    for (int e = 0; e < count; ++e) games_.push_back(make());
  }

  void step(const StateLayout& layout, const StepView& view) override {
    parallel_for(view.num_replicas, 1, [&](std::int64_t begin, std::int64_t end) {
      Arrays arrays(layout_);
      for (std::int64_t e = begin; e < end; ++e) {
        const auto replica = static_cast<int>(e);
        if (view.chooses(replica)) step_one(layout, view, replica, arrays);
      }
    });
  }
  Picture picture(int replica) override { return games_[static_cast<std::size_t>(replica)]->picture(); }

 private:
  struct Arrays {
    std::vector<std::int32_t> actions;
    std::vector<float> observation, reward, streams, statistics;
    std::vector<std::uint8_t> in_game, mask;

    explicit Arrays(const OutsideLayout& layout) : actions(static_cast<std::size_t>(layout.actions())) {
      clear(layout);
    }
    void clear(const OutsideLayout& layout) {
      observation.assign(static_cast<std::size_t>(layout.observations()), 0.0f);
      reward.assign(static_cast<std::size_t>(layout.num_agents()), 0.0f);
      in_game.assign(static_cast<std::size_t>(layout.num_agents()), 1);
      mask.assign(static_cast<std::size_t>(layout.choices()), 1);
      streams.assign(static_cast<std::size_t>(layout.streams()), 0.0f);
      statistics.assign(static_cast<std::size_t>(layout.statistics()), 0.0f);
    }
  };

  void step_one(const StateLayout& layout, const StepView& view, int replica, Arrays& arrays) {
    const auto index = static_cast<std::size_t>(replica);
    arrays.clear(layout_);
    OutsideStep step{.observation = arrays.observation.data(),
                     .reward = arrays.reward.data(),
                     .in_game = arrays.in_game.data(),
                     .action_mask = arrays.mask.data(),
                     .streams = arrays.streams.data(),
                     .statistics = arrays.statistics.data()};
    // In a training that was resumed, replicas are in episodes that these games do not know.
    if (begun_[index] == 0 || OutsideLayout::resets(layout, view, replica)) {
      games_[index]->reset(OutsideLayout::seed(layout, view, replica), step);
      begun_[index] = 1;
      step.resets = true;
      step.terminated = step.truncated = false;
    } else {
      layout_.read_actions(view, replica, arrays.actions.data());
      games_[index]->step(arrays.actions.data(), step);
    }
    layout_.write(layout, view, replica, step);
  }

  OutsideLayout layout_;
  std::vector<std::unique_ptr<OutsideReplica>> games_;  // [E]
  std::vector<std::uint8_t> begun_;                     // [E]: the game is in an episode that it began
};

}  // namespace

std::unique_ptr<OutsideReplicas> replicas_of_games(
    const Spec& spec, const OutsideOptions& options,
    const std::function<std::unique_ptr<OutsideReplica>()>& make) {
  if (options.reset == ResetMode::kGiven)
    throw UsageError("env.starts: a game that lives elsewhere begins its episodes itself");
  return std::make_unique<Games>(spec, options.num_envs, make);
}

}  // namespace wd
