// league.cpp: plays all pairs, and counts their results.
#include "src/evaluation/league.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/game/endless.h"
#include "wd/error.h"

namespace wd {
namespace {

// The returns of both sides in every episode. The k-th episode of a replica has the same start in every
// match.
std::vector<Episode> play_seated(Evaluator& evaluator, const Spec& spec, Match match,
                                 const League::Member& first, const League::Member& second) {
  match.players = {first.players[0], second.players[1]};
  match.episodes /= 2;
  std::vector<Episode> episodes = evaluator.play(match);
  std::ranges::stable_sort(episodes, {}, &Episode::replica);
  for (const Episode& episode : episodes)
    if (std::isnan(episode.returns[0])) throw UsageError(endless(spec, episode.length, kLongestPlayed));
  return episodes;
}

bool draws_actions(const Match& match, const League::Member& member) {
  const PlayerSpec::Kind kind = member.players[0].spec.kind;
  return kind == PlayerSpec::kRandom || (kind != PlayerSpec::kScripted && !match.greedy);
}

// Whether all episodes took the same course, as far as can be seen.
bool is_one_game(const std::vector<Episode>& episodes) {
  return episodes.size() > 1 && std::ranges::all_of(episodes, [&](const Episode& each) {
           return each.length == episodes[0].length && each.returns == episodes[0].returns &&
                  each.statistics == episodes[0].statistics;
         });
}

void count(SeatedGames& games, double own, double other) {
  (own > other ? games.wins : own < other ? games.losses : games.draws) += 1.0;
}

}  // namespace

SeatedGames League::of(int member, std::optional<int> other) const {
  SeatedGames all{member, other.value_or(member)};
  for (const SeatedGames& games : results) {
    const bool began = games.first == member;
    if (!began && games.second != member) continue;
    if (other && *other != (began ? games.second : games.first)) continue;
    all.wins += began ? games.wins : games.losses;
    all.draws += games.draws;
    all.losses += began ? games.losses : games.wins;
  }
  return all;
}

League play_league(Evaluator& evaluator, const Spec& spec, std::vector<League::Member> members, Match match) {
  WD_CHECK(match.episodes % 2 == 0 && members.size() > 1, "a league needs two players and pairs of games");
  League league{.members = std::move(members)};
  std::vector<std::vector<Episode>> played;  // as league.results
  for (std::size_t i = 0; i < league.members.size(); ++i) {
    for (std::size_t j = i + 1; j < league.members.size(); ++j) {
      for (const auto& [first, second] : {std::pair(i, j), std::pair(j, i)}) {
        played.push_back(play_seated(evaluator, spec, match, league.members[first], league.members[second]));
        league.results.push_back({static_cast<int>(first), static_cast<int>(second)});
        league.repeats |= !draws_actions(match, league.members[first]) &&
                          !draws_actions(match, league.members[second]) && is_one_game(played.back());
        for (const Episode& episode : played.back())
          league.by_game = league.by_game && std::abs(episode.returns[0] + episode.returns[1]) <=
                                                 1e-6 * std::abs(episode.returns[0]);
      }
    }
  }
  std::vector<SeatedGames> pairs;
  for (std::size_t m = 0; m < played.size(); m += 2) {
    SeatedGames& pair = pairs.emplace_back(league.results[m]);
    for (std::size_t k = 0; k < played[m].size(); ++k) {
      const std::vector<double>&one = played[m][k].returns, &other = played[m + 1][k].returns;
      count(league.results[m], one[0], one[1]);
      count(league.results[m + 1], other[0], other[1]);
      count(pair, one[0] + other[1], one[1] + other[0]);
    }
  }
  if (!league.by_game) league.results = pairs;
  league.ratings = rate(static_cast<int>(league.members.size()), league.results, league.by_game);
  return league;
}

}  // namespace wd
