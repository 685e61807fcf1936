// check.cpp: checks what a recording holds against the training that is to learn from it. Files may be a
// stranger's: nothing is used as an index or a size before it has passed here.
#include <ATen/ATen.h>

#include <algorithm>

#include "src/checkpoint/safetensors_header.h"
#include "src/recorded/entries.h"
#include "src/recorded/fields.h"
#include "src/recorded/recording.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr std::int64_t kCheckedBytes = std::int64_t{16} << 20;  // of observations

// What a tensor must be behind replicas and steps.
struct Form {
  std::string dtype;
  std::vector<std::int64_t> shape;
};

// Empty if recordings of this policy do not have the tensor. Files have no padding, and observations in
// either type, which is given.
std::optional<Form> form_of(const BufferField& field, const PolicyLayout& policy, const std::string& dtype) {
  const auto form = field.form(policy);
  if (!form) return {};
  Form found{dtype_of(form->type), form->shape};
  if (form->columns > 0) found.shape.back() = form->columns;
  if (field.tensor == &PolicyBuffers::observation && !policy.as_table())
    found.dtype = dtype_of(dtype == dtype_of(at::kBFloat16) ? at::kBFloat16 : at::kFloat);
  return found;
}

// The flags of steps, [n, A] or [n].
struct Flags {
  at::Tensor active, agent_terminated, terminated, truncated, reset_step;

  static bool at(const at::Tensor& flags, std::int64_t i) {
    return flags.const_data_ptr<std::uint8_t>()[i] != 0;
  }
  std::int64_t agents() const { return active.size(1); }
  bool ends(std::int64_t i) const { return at(terminated, i) || at(truncated, i); }
  bool resets(std::int64_t i) const { return at(reset_step, i); }
  at::Tensor played() const { return active.logical_and(reset_step.eq(0).unsqueeze(1)).to(at::kByte); }
};

std::optional<EntryFault> no_flag(const char* name, const at::Tensor& flags) {
  const at::Tensor wrong = flags.gt(1);
  if (!wrong.any().item<bool>()) return {};
  const auto at = wrong.flatten().nonzero()[0].item<std::int64_t>();
  const std::int64_t agents = flags.dim() > 1 ? flags.size(1) : 1;
  return EntryFault{
      name, at / agents, flags.dim() > 1 ? at % agents : -1,
      concat(static_cast<int>(flags.flatten()[at].item<std::uint8_t>()), ", and a flag is 0 or 1")};
}

// What the step before left behind, of every replica.
class Order {
 public:
  Order(std::int64_t replicas, std::int64_t agents)
      : ended_(static_cast<std::size_t>(replicas), kUnknown),
        left_(static_cast<std::size_t>(replicas * agents), 0) {}

  // Steps of one replica follow one another. i: within the flags.
  std::optional<EntryFault> fault(const Flags& flags, std::int64_t i, std::int64_t replica) {
    const std::int64_t A = flags.agents();
    std::uint8_t& ended = ended_[static_cast<std::size_t>(replica)];
    if (ended == kEnded && !flags.resets(i))
      return EntryFault{"reset_step", i, -1, "0 behind a step that terminated or truncated the episode"};
    if (ended == kGoesOn && flags.resets(i))
      return EntryFault{"reset_step", i, -1, "1 behind a step that did not end the episode"};
    for (std::int64_t a = 0; a < A; ++a) {
      std::uint8_t& left = left_[static_cast<std::size_t>(replica * A + a)];
      if (left != 0 && Flags::at(flags.active, i * A + a))
        return EntryFault{"active", i, a, "1 behind a step in which agent_terminated says that it left"};
      left = Flags::at(flags.agent_terminated, i * A + a) && !flags.ends(i) ? 1 : 0;
    }
    ended = flags.ends(i) ? kEnded : kGoesOn;
    return {};
  }

 private:
  enum : std::uint8_t { kUnknown, kGoesOn, kEnded };
  std::vector<std::uint8_t> ended_, left_;
};

}  // namespace

void Recording::check(const std::string& environment, const Spec& spec, const PolicyLayout& policy) const {
  check_headers(environment, spec, policy);
  check_entries(policy);
}

void Recording::check_headers(const std::string& environment, const Spec& spec,
                              const PolicyLayout& policy) const {
  for (const Part& part : parts_) {
    const TensorMetadata& found = part.file->metadata();
    for (const auto& [key, value] : recording_metadata(environment, spec, policy)) {
      const auto own = found.find(key);
      const std::string there = own == found.end() ? "nothing" : own->second;
      if (there == value) continue;
      const bool form = key == "observations";
      throw UsageError(concat(
          part.path.string(), ": was recorded with ", key, " = ", there, ", and this training has ", value,
          form ? concat(": set trainer.observations: ", there, ", or record again with it")
               : ": record it in this environment, with these policies and settings"));
    }
  }
  for (const Part& part : parts_) {
    for (const TensorInfo& info : part.file->tensors())
      if (std::ranges::none_of(recorded_fields(),
                               [&](const BufferField& field) { return field.name_of(policy) == info.name; }))
        fail(part.path,
             concat("has a tensor '", info.name, "', which recordings of this environment do not have"));
    for (const BufferField& field : recorded_fields()) {
      const std::string name = field.name_of(policy);
      const TensorInfo* const info = part.file->find(name);
      const std::optional<Form> form = form_of(field, policy, info == nullptr ? "" : info->dtype);
      if (info == nullptr && !form) continue;
      if (!form) fail(part.path, concat("has a tensor '", name, "', and this policy has none"));
      if (info == nullptr) fail(part.path, concat("has no tensor '", name, "'"));
      std::vector<std::int64_t> shape = {replicas_, part.steps};
      shape.insert(shape.end(), form->shape.begin(), form->shape.end());
      if (info->dtype != form->dtype || info->shape != shape)
        fail(part.path,
             concat("its tensor '", name, "' is ", describe_tensor(info->dtype, info->shape), " where ",
                    describe_tensor(form->dtype, shape), " [replicas, steps, ...] is expected"));
    }
  }
}

void Recording::check_entries(const PolicyLayout& policy) const {
  Order order(replicas_, policy.num_agents);
  std::int64_t transitions = 0;
  for (const Part& part : parts_) {
    const std::int64_t all = replicas_ * part.steps;
    const std::int64_t bytes = row_bytes(*part.file->find("observation"));
    const std::int64_t most = std::max<std::int64_t>(kCheckedBytes / bytes, 1);
    for (std::int64_t first = 0; first < all; first += most) {
      const std::int64_t n = std::min(most, all - first);
      const auto read = [&](const std::string& field) { return rows(part, field, first, n); };
      const auto refuse = [&](const std::optional<EntryFault>& fault) {
        if (!fault) return;
        const std::int64_t row = first + fault->entry;
        throw UsageError(concat(part.path.string(), ": tensor '", fault->tensor, "', replica ",
                                row / part.steps, ", step ", part.first + row % part.steps,
                                fault->agent < 0 ? "" : concat(", agent ", fault->agent), ": is ",
                                fault->what, ": nothing was learned; mend the data, or record again"));
      };
      const auto read_flags = [&](const char* field) {
        at::Tensor found = read(field);
        refuse(no_flag(field, found));
        return found;
      };
      const Flags flags{read_flags("active"), read_flags("agent_terminated"), read_flags("terminated"),
                        read_flags("truncated"), read_flags("reset_step")};
      for (std::int64_t i = 0; i < n; ++i) refuse(order.fault(flags, i, (first + i) / part.steps));
      const Entries entries{.observation = read("observation"),
                            .action_mask = policy.has_action_mask ? read("action_mask") : at::Tensor(),
                            .action = read("action"),
                            .reward = read("reward"),
                            .played = flags.played()};
      refuse(entry_fault(entries, policy.action_space));
      for (const BufferField& field : recorded_fields())
        if (field.stream >= 0 && field.in_batch(policy))
          refuse(number_fault(field.name_of(policy), read(field.name_of(policy))));
      transitions += entries.played.sum().item<std::int64_t>();
    }
  }
  if (transitions == 0)
    fail(folder_, "has no transition: every step is a reset, or no agent of the policy is in the game");
}

}  // namespace wd
