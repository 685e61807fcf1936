// usage.h: what the networks of a policy use, as its layout tells it, for src/config/compatible.h.
#pragma once

#include "src/config/compatible.h"
#include "wd/trajectory.h"

namespace wd {

inline Usage usage_of(const PolicyLayout& layout, const ModelSettings& model, PolicyOutput output) {
  Usage usage;
  usage.words["policy"] = layout.name;
  add_model(usage, model);
  add_streams(usage, model, layout.streams);
  add_output(usage, output);
  add_actions(usage, layout.action_space);
  usage.uses.add(Use::kTable, layout.as_table());
  usage.uses.add(Use::kNoEntities, layout.entities.lists.empty());
  usage.uses.add(Use::kNoChoiceFeatures, layout.choice_features.size == 0);
  usage.uses.add(Use::kSeveralReadings, !layout.one_reading);
  return usage;
}

}  // namespace wd
