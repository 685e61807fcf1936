// heads.h: what the outputs of a policy's network mean: one table. A new kind of actor is a struct in
// kernels/distribution.h, a row here, and rows of what it excludes in compatible.cpp.
#pragma once

#include <span>

#include "wd/config.h"
#include "wd/kernels/action_layout.h"

namespace wd {

struct Head {
  enum Actions { kChoices, kBox };
  // The value of a state: an output of its own, that of the best choice, or what critics compute.
  enum Value { kOfState, kOfBestChoice, kOfCritics };
  // Deviations of components: none, learned numbers beside the network (log_std), or outputs.
  enum Deviations { kNone, kNumbers, kOutputs };

  const char* name;  // in weights files, for Python: heads that act alike have the same
  Distribution distribution;
  // Which policies have it. Choices have no other setting than the default.
  PolicyOutput output;
  Actions actions;
  ContinuousDistribution setting;
  Value value;
  Deviations deviations;
  bool squashes = false;     // actions are the tanh of what is drawn: they need bounds
  bool uses_latent = false;  // the noise is a function of the actor's last hidden layer
  // Of the first weights: near 0, so that all actions are about equally probable; of values 1.
  double gain = 0.01;

  static std::span<const Head> all();
  // There is one for all that compatible.cpp allows.
  static const Head& of(const ActionSpace& space, const ModelSettings& model, PolicyOutput output);

  bool has_state_value() const { return value == kOfState; }
  int num_log_std(const ActionSpace& space, const ModelSettings& model) const;
  // Throws UsageError if there are too many choices or components for the kernels.
  ActionLayout layout(const ActionSpace& space) const;
};

}  // namespace wd
