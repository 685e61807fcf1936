// game.cpp: one step after another, the same for training, evaluation, recording and benchmarks.
#include "wd/game.h"

#include <utility>

#include "src/device/graph.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {

Game::Game(const Environment& environment, const ReplicasOptions& options, RolloutShape shape)
    : replicas_(environment, options),
      trajectory_(std::move(shape)),
      branches_(std::make_unique<Branches>(options.device)) {}
Game::~Game() = default;
Game::Game(Game&&) noexcept = default;

void Game::begin() {
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
  branches_->each(players_.size(),
                  [&](std::size_t p) { players_[p]->act(trajectory_.policies()[p], t, draw); });
}

void Game::step(int t) { replicas_.step(trajectory_.rows(t)); }

}  // namespace wd
