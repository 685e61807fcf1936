// bank.h: policies whose networks differ in nothing but their weights act in one pass, each in its own rows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/tiles.h"
#include "src/policy/impl.h"

namespace wd {

// The rows of a step are sorted into tiles by the policy that acts for them (kernels/tiles.h), gathered, and
// their actions are scattered. So the cost is that of one policy, whatever the number of them; the actions
// are those that each policy draws alone. On the CPU a tile is a block of a lane. On a GPU all tiles are one
// batched product, whose shapes do not depend on who plays where, so that a graph can hold it.
class Bank {
 public:
  // The first policy is `lead`, whose working memory all use. `buffers` are those in which all act, and hold
  // the state of their networks if `is_own`. At most `sets` policies, of players below `players`.
  Bank(const PolicyBuffers& buffers, Policy& lead, const PolicySettings& settings, bool is_own, int sets,
       int players);
  // Whether this policy can be in a bank, and whether two with these settings can be in one. On a GPU it must
  // be a perceptron without layer normalization that reads rows of observations, and acts for choices.
  static bool can_hold(const Policy& policy);
  static bool are_alike(const PolicySettings& one, const PolicySettings& other);
  // [bytes] that one needs whose lead has these settings, if `is_own` beyond what the lead needs alone.
  // `layout`: with the state and the streams of the lead. On a GPU, 0 if can_hold() would be false.
  static double bytes(const PolicyLayout& layout, const PolicySettings& lead, std::int64_t replicas,
                      bool is_own, int sets, Device device, Precision precision);

  const PolicySettings& settings() const { return settings_; }

  // From now on this policy acts where this player plays. It must outlive the bank.
  void add(Policy& policy, int player);
  // The first policy is this player too.
  void play_as_first(int player) { set_of_player_[player] = 0; }
  // Acts in row t where its players play. What a policy explores with is only for the lead of its own
  // buffers.
  void act(PolicyBuffers& buffers, int t, const Policy::ActOptions& options);
  // [1, E, A, size], of networks that do not keep their state in the buffers; undefined: none. And of noise.
  const at::Tensor& state() const { return state_; }
  const at::Tensor& noise() const { return noise_; }

 private:
  struct Size {
    std::int64_t tile, capacity;  // units of a tile, and tiles at most
  };
  static Size size_of(std::int64_t rows, std::int64_t units, std::int64_t unit_rows, int sets, bool cuda);

  // On a GPU: the actors of all tiles.
  struct Tiled {
    std::unique_ptr<Network> network;
    std::unique_ptr<Network::Workspace> memory;
    at::Tensor parameters, shadow;  // [tiles, P]
    at::Tensor sources;             // [sets] int64: where the parameters of each are
  };

  PolicyPass pass_of(std::int64_t unit, std::int64_t units) const;
  // The outputs of all tiles.
  PolicyPass pass_of_tiles(Queue queue);

  // A field that policies read, and where its gathered rows are.
  struct Input {
    at::Tensor from, to;
    bool by_step;
    std::int64_t unit_bytes;
  };

  Policy::Impl& lead_;
  PolicySettings settings_;
  bool is_own_;
  std::vector<const Policy::Impl*> sets_;
  TilesArgs tiles_;
  std::vector<at::Tensor> memory_;  // that tiles_ points to
  at::Tensor set_of_player_, state_, noise_;
  PolicyBuffers staged_;  // [1, units, rows of a unit, ...], states and noise [2, ...]
  PolicyPass whole_;      // the inputs of all its rows
  std::vector<Input> inputs_;
  std::optional<Tiled> tiled_;
};

}  // namespace wd
