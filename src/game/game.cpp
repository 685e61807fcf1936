// game.cpp: one step after another, the same for training, evaluation, recording and benchmarks.
#include "wd/game.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "src/device/graph.h"
#include "src/game/opponents.h"
#include "wd/detail/parallel.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {

Game::Game(const Environment& environment, const ReplicasOptions& options, RolloutShape shape)
    : environment_(&environment),
      replicas_(environment, options),
      trajectory_(std::move(shape)),
      branches_(std::make_unique<Branches>(options.device)) {}
Game::~Game() = default;
Game::Game(Game&&) noexcept = default;

bool Game::is_on_host() const {
  return replicas_.is_outside() ||
         std::ranges::any_of(players_, [](const auto& player) { return player->is_on_host(); });
}

void Game::begin() {
  scripted_ = at::Tensor();
  for (std::size_t p = 0; p < players_.size(); ++p)
    if (trajectory_.policies()[p].opponents > 0 &&
        dynamic_cast<const OpponentsPlayer*>(players_[p].get()) == nullptr)
      throw UsageError(concat("policy ", trajectory_.policies()[p].name,
                              " has opponents, and its player draws none: add players by wd::add_players()"));
  if (started_) {
    trajectory_.carry_over();
  } else {
    replicas_.step(trajectory_.first_rows());
    started_ = true;
  }
}

void Game::act(int t, const Player::Draw& draw) {
  WD_CHECK(players_.size() == trajectory_.policies().size(), "a game of ", trajectory_.policies().size(),
           " policies needs a player for each, and has ", players_.size());
  heartbeat::beat();
  branches_->each(players_.size(), [&](std::size_t p) {
    PolicyBuffers& buffers = trajectory_.policies()[p];
    buffers.unit = players_[p]->act(buffers, t, draw);
  });
}

void Game::step(int t) {
  replicas_.step(trajectory_.rows(t));
  scripted_ = at::Tensor();
}

const at::Tensor& Game::scripted() {
  if (scripted_.defined()) return scripted_;
  require_script(*environment_);
  const StateLayout& layout = replicas_.layout();
  const at::Tensor blocks = replicas_.blocks().cpu();
  scripted_ = at::empty({blocks.size(0), layout.num_agents, layout.action_width}, at::kInt);
  const auto* const from = static_cast<const std::byte*>(blocks.const_data_ptr());
  auto* const to = scripted_.mutable_data_ptr<std::int32_t>();
  parallel_for(blocks.size(0), 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t e = begin; e < end; ++e)
      environment_->scripted(layout, from + e * blocks.stride(0), to + e * scripted_.stride(0));
  });
  return scripted_;
}

}  // namespace wd
