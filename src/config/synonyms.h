// synonyms.h: names that other libraries, or users, give to some of our keys.
#pragma once

#include <array>
#include <string_view>
#include <utility>

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
                                                                  {"norm_adv", "normalize_advantage"}});

// Our name of the key; empty if it is none of the above.
constexpr std::string_view our_name(std::string_view key) {
  for (const auto& [foreign, ours] : kElsewhereCalled)
    if (key == foreign) return ours;
  return {};
}

}  // namespace wd::config
