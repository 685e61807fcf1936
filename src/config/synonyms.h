// synonyms.h: names that other libraries, or users, give to some of our keys.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wd::config {

inline constexpr auto kElsewhereCalled =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"learning_rate", "lr"},
                                                                  {"batch_size", "train_batch_size"},
                                                                  {"n_envs", "num_envs"},
                                                                  {"envs", "num_envs"},
                                                                  {"ent_coef", "entropy_coeff"},
                                                                  {"vf_coef", "vf_loss_coeff"},
                                                                  {"clip_range", "clip_param"},
                                                                  {"clip_coef", "clip_param"},
                                                                  {"n_epochs", "num_epochs"},
                                                                  {"epochs", "num_epochs"},
                                                                  {"update_epochs", "num_epochs"},
                                                                  {"hidden_sizes", "fc_dims"},
                                                                  {"net_arch", "fc_dims"},
                                                                  {"total_timesteps", "total_steps"},
                                                                  {"timesteps", "total_steps"},
                                                                  {"steps", "total_steps"},
                                                                  {"lambda", "gae_lambda"},
                                                                  {"norm_adv", "normalize_advantage"},
                                                                  {"mixing_embed_dim", "mixer_dim"},
                                                                  {"hypernet_embed", "hypernet_dims"},
                                                                  {"seats", "agents"}});

// Our name of the key; empty if it is none of the above.
constexpr std::string_view our_name(std::string_view key) {
  for (const auto& [foreign, ours] : kElsewhereCalled)
    if (key == foreign) return ours;
  return {};
}

// What others count otherwise, or look for here: their key, our key of the same section, what to say.
struct CountedOtherwise {
  std::string_view key, ours, text;
};
inline constexpr auto kCountedOtherwise = std::to_array<CountedOtherwise>(
    {{"batch_size", "num_minibatches",
      "in place of rows per minibatch, set num_minibatches = trainer.train_batch_size / batch_size"},
     {"n_steps", "gae_lambda",
      "in place of steps per rollout, set trainer.train_batch_size = n_steps * trainer.num_envs"},
     {"n_steps", "train_batch_size",
      "in place of steps per rollout, set train_batch_size = n_steps * num_envs"},
     {"num_steps", "gae_lambda",
      "in place of steps per rollout, set trainer.train_batch_size = num_steps * trainer.num_envs"},
     {"num_steps", "train_batch_size",
      "in place of steps per rollout, set train_batch_size = num_steps * num_envs"},
     {"opponents", "agents", "it is a section of its own, opponents: {NAME of the policy: [RUN, ...]}"}});

// Algorithms that are asked for and missing: what to say.
inline std::string_view missing_algorithm(std::string_view name) {
  return name == "HAPPO" ? "; HAPPO is not here (docs/design/0035-teams.md): take MAPPO" : "";
}

// What to say of the key in a section that has these keys; empty if it is none of the above.
inline std::string_view counted_otherwise(std::string_view key, const std::vector<std::string>& names) {
  for (const CountedOtherwise& other : kCountedOtherwise)
    if (key == other.key && std::ranges::find(names, other.ours) != names.end()) return other.text;
  return {};
}

}  // namespace wd::config
