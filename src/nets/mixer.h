// mixer.h: the network that computes the weights of a team's mixer from the state of the game.
#pragma once

#include "wd/kernels/team.h"
#include "wd/network.h"

namespace wd {

TeamMixer team_mixer_of(const Mixer& mixer, int agents);

// Creates perceptrons with the outputs of TeamMixer. A row of theirs stands for all agents of a replica:
// their workspaces are made for so many times as many rows. Throws UsageError if model.critic_reads names
// anything else than streams of replicas.
MakeNetwork mixer_maker(const PolicyLayout& layout, const ModelSettings& model, const Mixer& mixer,
                        Device device, Precision precision);

}  // namespace wd
