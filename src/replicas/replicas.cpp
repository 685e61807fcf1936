// replicas.cpp: the memory of the replicas, their start states, and the call that steps them on either
// device.
#include "wd/replicas.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/json.h"
#include "src/device/device.h"
#include "src/device/tensor_device.h"
#include "src/replicas/host_rows.h"
#include "src/replicas/spec_fault.h"
#include "src/replicas/state_json.h"
#include "wd/detail/packing.h"
#include "wd/detail/profile.h"
#include "wd/error.h"

namespace wd {

namespace {

at::TensorOptions bytes_on(Device device) {
  return at::TensorOptions().dtype(at::kByte).device(torch_device(device));
}

std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<std::byte*>(tensor.data_ptr()); }

// Start states given as a JSON list: the environment's own start (replica 0, episode 0), overwritten with the
// given fields.
at::Tensor make_images(const Environment& environment, const StateLayout& layout,
                       const ReplicasOptions& options, StepView view) {
  nlohmann::json starts = parse_json(options.starts);
  if (starts.is_object()) starts = nlohmann::json::array({starts});
  if (!starts.is_array() || starts.empty())
    throw UsageError("env.starts: expected a JSON list of {\"field\": [values], ...}");
  const auto count = static_cast<std::int64_t>(starts.size());
  at::Tensor images = at::zeros({count, layout.block_bytes}, bytes_on({}));
  for (std::int64_t k = 0; k < count; ++k) {
    std::byte* const block = bytes_of(images) + k * layout.block_bytes;
    const ReplicaHeader fresh;
    std::memcpy(block, &fresh, sizeof(fresh));
    view.blocks = block;
    view.reset = ResetMode::kFixed;
    environment.step(layout, view);
    write_fields(block, layout, starts[static_cast<std::size_t>(k)]);
    environment.derive(layout, block);
  }
  return images;
}

// A view of one replica that writes its rows to memory that is never read.
struct BlindRows {
  std::vector<std::vector<float>> observations;
  std::vector<std::vector<std::uint8_t>> flags;
  StepView view;

  explicit BlindRows(const Spec& spec) {
    view.num_replicas = 1;
    view.add_roles(spec);
    for (std::size_t r = 0; r < spec.roles.size(); ++r) {
      SeatView& rows = view.seats[r];
      const auto count = static_cast<std::size_t>(rows.count);
      rows.observation =
          observations.emplace_back(count * static_cast<std::size_t>(rows.observation_stride)).data();
      rows.active = flags.emplace_back(count).data();
      if (spec.roles[r].action_mask)
        rows.action_mask = flags.emplace_back(count * static_cast<std::size_t>(rows.mask_width)).data();
    }
  }
};

// Reverses the order of the bits, so that consecutive numbers have distant results (van der Corput 1935).
std::uint32_t reversed(std::uint32_t bits) {
  std::uint32_t result = 0;
  for (int k = 0; k < 32; ++k) result |= (bits >> k & 1u) << (31 - k);
  return result;
}

}  // namespace

int staggered_steps(std::uint64_t seed, std::uint32_t replica, int time_limit) {
  const RandomKey key = RandomKey::of(seed, RandomUse::kStagger);
  const std::uint32_t place = reversed(replica) + philox({{0, 0, 0, 0}}, key.key0, key.key1).word[0];
  return 1 + static_cast<int>((std::uint64_t{place} * static_cast<std::uint64_t>(time_limit)) >> 32);
}

Replicas::Replicas(const Environment& environment, ReplicasOptions options)
    : environment_(environment), options_(std::move(options)), spec_(environment.spec()) {
  layout_ = environment.layout();
  if (const std::string fault = spec_fault(spec_, layout_); !fault.empty())
    throw UsageError(concat("environment ", environment.name(), ": ", fault));
  find_statistics();
  const auto* const outside = dynamic_cast<const OutsideEnvironment*>(&environment);
  if (const std::string fault = device_fault(environment, options_.device); !fault.empty())
    throw UsageError(fault + ": use --device cpu");
  if (options_.reset == ResetMode::kPool && options_.pool_size == 0)
    throw UsageError("env.reset_pool_size must be positive with env.reset: pool");
  const auto bytes = bytes_on(options_.device);
  blocks_ = at::zeros({options_.num_envs, layout_.block_bytes}, bytes);
  write_fresh_headers();
  if (options_.device.is_cuda() && !detail::is_staged(layout_, shared_memory(options_.device)))
    scratch_ = at::zeros({options_.num_envs, layout_.scratch_bytes}, bytes);
  if (options_.notes_dropped) {
    constexpr std::int64_t kNumbers = sizeof(DroppedReward) / sizeof(std::int32_t);
    dropped_ = at::zeros({options_.num_envs, layout_.num_agents, kNumbers}, bytes.dtype(at::kInt));
  }
  if (outside != nullptr) {
    outside_ = outside->open({options_.num_envs, options_.first_replica, options_.reset, options_.pictures});
    if (options_.device.is_cuda()) host_rows_ = std::make_shared<HostRows>(options_.device);
    return;
  }
  make_given_starts();
}

// What given starts leave out depends on the seed.
void Replicas::make_given_starts() {
  if (options_.reset != ResetMode::kGiven) return;
  BlindRows blind(spec_);
  blind.view.start_key = start_key();
  images_ = make_images(environment_, layout_, options_, blind.view).to(blocks_.device());
  options_.pool_size = static_cast<std::uint32_t>(images_.size(0));
}

void Replicas::write_fresh_headers() {
  constexpr std::int64_t kBytes = sizeof(ReplicaHeader);
  at::Tensor headers = at::empty({options_.num_envs, kBytes}, bytes_on({}));
  for (int e = 0; e < options_.num_envs; ++e) {
    ReplicaHeader fresh;
    fresh.first_steps = first_steps(e);
    std::memcpy(bytes_of(headers) + e * kBytes, &fresh, kBytes);
  }
  blocks_.narrow(1, 0, kBytes).copy_(headers);
}

void Replicas::begin_episodes(const at::Tensor& chosen) {
  constexpr std::int64_t kWord = offsetof(ReplicaHeader, reset_pending) / sizeof(std::int32_t);
  const at::Tensor pending = blocks_.view(at::kInt).select(1, kWord);
  chosen.defined() ? pending.masked_fill_(chosen, 1) : pending.fill_(1);
}

void Replicas::restart(std::uint64_t seed) {
  options_.seed = seed;
  if (outside_ == nullptr) make_given_starts();
  write_fresh_headers();
}

// Returns 0 if the first episode is a whole one.
int Replicas::first_steps(int replica) const {
  if (!options_.staggered) return 0;
  const int steps = staggered_steps(
      options_.seed, options_.first_replica + static_cast<std::uint32_t>(replica), spec_.time_limit);
  return steps < spec_.time_limit ? steps : 0;
}

void Replicas::find_statistics() {
  for (const Statistic& statistic : spec_.statistics) {
    const StateField& field = layout_.field(statistic.field);
    StatisticView& view = statistics_.emplace_back(field.offset, field.count, field.type);
    if (!field.per_agent) continue;
    int first = 0;
    for (const Role& role : spec_.roles) {
      view.count = role.count;
      if (role.name == statistic.role) break;
      first += role.count;
    }
    view.offset += static_cast<std::uint32_t>(first) * (field.type == FieldType::kDouble ? 8u : 4u);
  }
}

RandomKey Replicas::start_key() const {
  return RandomKey::of(options_.start_seed.value_or(options_.seed), RandomUse::kEnvironment);
}

void Replicas::complete(StepView& rows) const {
  rows.num_replicas = options_.num_envs;
  rows.first_replica = options_.first_replica;
  rows.time_limit = spec_.time_limit;
  rows.at_time_limit = spec_.at_time_limit;
  rows.key = RandomKey::of(options_.seed, RandomUse::kEnvironment);
  rows.start_key = start_key();
  rows.pool_key = RandomKey::of(options_.seed, RandomUse::kPool);
  rows.reset = options_.reset;
  rows.pool_size = options_.pool_size;
  rows.images = images_.defined() ? bytes_of(images_) : nullptr;
  rows.blocks = bytes_of(blocks_);
  rows.num_statistics = static_cast<int>(statistics_.size());
  std::copy(statistics_.begin(), statistics_.end(), rows.statistics);
  if (dropped_.defined())
    rows.dropped = reinterpret_cast<DroppedReward*>(dropped_.mutable_data_ptr<std::int32_t>());
  rows.scratch = scratch_.defined() ? bytes_of(scratch_) : nullptr;
}

void Replicas::step(StepView rows) {
  complete(rows);
  if (outside_ != nullptr) {
    step_outside(rows);
  } else if (options_.device.is_cuda()) {
    environment_.cuda()->step(environment_.params(), layout_, rows, current_queue(options_.device).stream);
  } else {
    const profile::Scope scope("step replicas");
    environment_.step(layout_, rows);
  }
}

void Replicas::step_outside(const StepView& rows) {
  const profile::Scope scope("step replicas");
  if (host_rows_ == nullptr) return outside_->step(layout_, rows);
  outside_->step(layout_, host_rows_->begin(layout_, rows));
  host_rows_->end();
}

std::vector<double> Replicas::read(int replica, const StateField& field) const {
  WD_CHECK(replica >= 0 && replica < options_.num_envs, "replica ", replica, " is not in [0, ",
           options_.num_envs, ")");
  return read_field(bytes_of(blocks_[replica].cpu()), field);
}

ReplicaHeader Replicas::header(int replica) const {
  ReplicaHeader header;
  const at::Tensor block = blocks_[replica].cpu();
  std::memcpy(&header, bytes_of(block), sizeof(header));
  return header;
}

std::vector<std::uint8_t> Replicas::in_game(const std::byte* block) const {
  std::vector<std::uint8_t> flags(static_cast<std::size_t>(layout_.num_agents));
  environment_.in_game(layout_, block, flags.data());
  return flags;
}

Picture Replicas::picture(int replica) const {
  return outside_ == nullptr ? Picture() : outside_->picture(replica);
}

void Replicas::write(int replica, const std::string& json) {
  WD_CHECK(!options_.device.is_cuda(), "Replicas::write works on the CPU only");
  std::byte* const block = bytes_of(blocks_) + static_cast<std::size_t>(replica) * layout_.block_bytes;
  write_fields(block, layout_, parse_json(json));
  environment_.derive(layout_, block);
}

}  // namespace wd
