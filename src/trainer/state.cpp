// state.cpp: moves everything that the next iteration depends on from the ranks to rank 0 and back.
#include <ATen/ATen.h>
#include <xxhash.h>

#include <cstring>

#include "src/base/join.h"
#include "src/base/json.h"
#include "src/game/opponents.h"
#include "src/nets/timed_algorithms.h"
#include "src/replicas/spec_fault.h"
#include "src/trainer/impl.h"
#include "src/trainer/named.h"
#include "wd/error.h"
#include "wd/weights.h"

namespace wd {

namespace {

// Returns rank 0's tensor, on the host of every rank. Its type is one of those that checkpoints hold.
at::Tensor distribute(const ProcessGroup& group, const at::Tensor& source) {
  if (group.size() == 1) return source;
  constexpr std::int64_t kMaxDimensions = 8;
  const at::Tensor form = at::zeros({2 + kMaxDimensions}, at::kLong);  // type, dimensions, sizes
  auto* const numbers = form.mutable_data_ptr<std::int64_t>();
  if (group.leads()) {
    WD_CHECK(source.dim() <= kMaxDimensions, "a tensor of ", source.dim(), " dimensions");
    numbers[0] = static_cast<std::int64_t>(source.scalar_type());
    numbers[1] = source.dim();
    std::copy(source.sizes().begin(), source.sizes().end(), numbers + 2);
  }
  group.broadcast(form);
  const at::IntArrayRef shape(numbers + 2, static_cast<std::size_t>(numbers[1]));
  const at::Tensor tensor =
      group.leads() ? source.contiguous() : at::empty(shape, static_cast<at::ScalarType>(numbers[0]));
  if (tensor.numel() > 0) group.broadcast(tensor);
  return tensor;
}

// Returns this rank's rows of rank 0's tensor, on the host.
at::Tensor share_out(const ProcessGroup& group, const NamedTensor& own, const at::Tensor& source) {
  std::vector<std::int64_t> shape = own.tensor.sizes().vec();
  at::Tensor rows = at::empty(shape, own.tensor.options().device(at::kCPU));
  shape[0] *= group.size();
  if (group.leads()) {
    WD_CHECK(source.sizes() == at::IntArrayRef(shape) && source.scalar_type() == rows.scalar_type(),
             "the checkpoint's tensor '", own.name, "' is ", source.scalar_type(), source.sizes(), " where ",
             rows.scalar_type(), at::IntArrayRef(shape), " is expected");
  }
  group.scatter_rows(source, rows);
  return rows;
}

// This rank's part of tensors that rank 0 has in a file; the other ranks pass null.
std::vector<NamedTensor> own_parts(const ProcessGroup& group, const std::vector<NamedTensor>& tensors,
                                   const std::vector<NamedTensor>* saved) {
  std::vector<NamedTensor> own;
  for (const NamedTensor& named : tensors) {
    const at::Tensor source = saved == nullptr ? at::Tensor() : find_tensor(*saved, named.name);
    own.push_back(
        {named.name, named.per_replica ? share_out(group, named, source) : distribute(group, source)});
  }
  return own;
}

void restore_tensors(const std::vector<NamedTensor>& own, const std::vector<NamedTensor>& into) {
  for (const NamedTensor& named : into) restore_tensor(own, named.name, named.tensor);
}

// What cannot be in the headers of replicas that were read from a file; or nothing.
std::string header_fault(const Replicas& replicas, std::int64_t first_replica) {
  const at::Tensor headers = replicas.blocks().narrow(1, 0, sizeof(ReplicaHeader)).contiguous().cpu();
  for (std::int64_t e = 0; e < headers.size(0); ++e) {
    ReplicaHeader header;
    std::memcpy(&header, headers[e].const_data_ptr<std::uint8_t>(), sizeof header);
    const bool possible = header.t >= 0 && header.t < kMaxTimeLimit && header.first_steps >= 0 &&
                          (header.reset_pending == 0 || header.reset_pending == 1);
    if (!possible)
      return concat("replicas.safetensors: tensor 'blocks', replica ", first_replica + e, ": step ", header.t,
                    ", reset_pending ", header.reset_pending, " and first_steps ", header.first_steps,
                    " cannot be: go on from another checkpoint");
  }
  return {};
}

}  // namespace

// Everything that is saved, by file: the tensors themselves, not copies; but statistics beside an average,
// which are those of the policy's own file.
std::map<std::string, std::vector<NamedTensor>> Trainer::Impl::files() const {
  std::map<std::string, std::vector<NamedTensor>> files;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    files[kWeightsFolder + policies[p].name()] = policies[p].saved();
    if (averages[p].is_on()) files[kWeightsFolder + average_name(policies[p].name())] = averages[p].saved();
    files["optimizer/" + policies[p].name()] = learners[p].algorithm().state();
  }
  std::vector<NamedTensor>& replica_file = files["replicas"];
  replica_file.push_back({"blocks", replicas.blocks(), true});
  for (NamedTensor& row : trajectory.last_rows()) replica_file.push_back(std::move(row));
  for (std::size_t p = 0; p < policies.size(); ++p)
    for (const NamedTensor& own : game.players()[p]->state())
      replica_file.push_back({policies[p].name() + '/' + own.name, own.tensor, own.per_replica});
  files["episodes"] = episodes.state();
  return files;
}

// What training goes on with, if the policies have the weights from before the last update.
std::map<std::string, std::vector<NamedTensor>> Trainer::Impl::trained_files() {
  std::map<std::string, std::vector<NamedTensor>> files;
  if (!update_taken_back) return files;
  exchange_played();
  for (const Policy& policy : policies) files[kTrainedFolder + policy.name()] = host_copies(policy.saved());
  exchange_played();
  return files;
}

Snapshot Trainer::snapshot() const {
  check();
  impl_->episodes.read();
  Snapshot snapshot{impl_->counts, wall_s(), impl_->files()};
  if (impl_->device.is_cuda()) snapshot.products = impl_->group.all_gather(timed_algorithms::save());
  for (auto& [file, tensors] : snapshot.files) {
    tensors = host_copies(tensors);
    for (NamedTensor& named : tensors)
      if (named.per_replica) named.tensor = impl_->group.gather_rows(named.tensor);
  }
  snapshot.files.merge(impl_->trained_files());
  for (const OpponentsPlayer* const listed : opponents_of(impl_->game)) listed->add_to(snapshot);
  return snapshot;
}

// Rows of replicas cover all ranks; the other episode data are as long as the number of episodes.
SnapshotForms Trainer::snapshot_forms() const {
  SnapshotForms forms;
  for (const auto& [file, tensors] : impl_->files()) {
    for (const NamedTensor& named : tensors) {
      TensorForm& form = forms[file].emplace_back(form_of(named));
      if (named.per_replica) {
        form.shape[0] *= impl_->group.size();
      } else if (file == "episodes" && form.shape.size() == 1) {
        form.shape = {kAnyLength};
      }
    }
  }
  return forms;
}

// After the policies have the weights of trained/, if the snapshot has these: the weights that played are
// those of weights/.
void Trainer::Impl::restore_played(const Snapshot& snapshot) {
  played_known = update_taken_back = false;
  const auto trained = snapshot.files.find(kTrainedFolder + policies[0].name());
  if (!any(group.leads() && trained != snapshot.files.end()) || played.copies().empty()) return;
  played.exchange();
  for (const Policy& policy : policies) {
    const auto* const saved = group.leads() ? &snapshot.files.at(kWeightsFolder + policy.name()) : nullptr;
    restore_tensors(own_parts(group, policy.saved(), saved), policy.saved());
  }
  played.exchange();
  played_known = true;
}

// Rank 0 has the snapshot; replica data go to the ranks that step the replicas, the rest to all ranks.
void Trainer::restore(const Snapshot& snapshot) {
  Impl& self = *impl_;
  const ProcessGroup& group = self.group;
  for (const auto& [file, tensors] : self.files()) {
    const std::vector<NamedTensor>* saved = nullptr;
    if (group.leads()) {
      auto found = snapshot.files.end();
      if (file.starts_with(kWeightsFolder))
        found = snapshot.files.find(kTrainedFolder + file.substr(std::strlen(kWeightsFolder)));
      if (found == snapshot.files.end()) found = snapshot.files.find(file);
      WD_CHECK(found != snapshot.files.end(), "the checkpoint has no file ", file, ".safetensors");
      saved = &found->second;
    }
    const std::vector<NamedTensor> own = own_parts(group, tensors, saved);
    if (file == "episodes")
      self.episodes.restore(own);
    else
      restore_tensors(own, tensors);
  }
  for (const std::string& fault : group.all_gather(header_fault(self.replicas, self.share.first_replica)))
    if (!fault.empty()) throw UsageError(fault);
  self.restore_played(snapshot);
  const nlohmann::json numbers =
      parse_json(group.broadcast(dump(nlohmann::json{{"iteration", snapshot.counts.iteration},
                                                     {"env_steps", snapshot.counts.env_steps},
                                                     {"agent_steps", snapshot.counts.agent_steps},
                                                     {"wall_s", snapshot.wall_s},
                                                     {"products", snapshot.products}})));
  // With another number of ranks, bits differ anyway.
  const nlohmann::json& products = numbers["products"];
  if (self.device.is_cuda() && products.size() == static_cast<std::size_t>(group.size()))
    timed_algorithms::restore(products[static_cast<std::size_t>(group.rank())].get<std::string>());
  self.parameters_changed();
  for (OpponentsPlayer* const listed : opponents_of(self.game)) listed->restored();
  self.counts = {numbers["iteration"], numbers["env_steps"], numbers["agent_steps"]};
  self.clock.set(self.counts.iteration, self.counts.env_steps);
  self.counts_at_metrics = self.counts;
  self.game.restore_started(self.counts.iteration > 0);
  self.memory_awaited = has_memory();
  self.metrics_taken = Clock::now();
  self.start = self.metrics_taken -
               std::chrono::duration_cast<Clock::duration>(Seconds(numbers["wall_s"].get<double>()));
}

void Trainer::check_ranks_agree() const {
  const Impl& self = *impl_;
  if (self.group.size() == 1) return;
  XXH64_hash_t hash = XXH3_64bits(&self.counts, sizeof(self.counts));
  for (const at::Tensor& tensor : self.learned()) {
    const at::Tensor host = tensor.cpu();
    hash = XXH3_64bits_withSeed(host.const_data_ptr(), host.nbytes(), hash);
  }
  const at::Tensor all =
      self.group.all_gather_rows(at::full({1}, static_cast<std::int64_t>(hash), at::kLong));
  std::vector<int> others;
  for (int r = 1; r < self.group.size(); ++r)
    if (all[r].item<std::int64_t>() != all[0].item<std::int64_t>()) others.push_back(r);
  WD_CHECK(others.empty(), "after iteration ", self.counts.iteration,
           " parameters, moments or counters of rank ", join(others),
           " are not those of rank 0: the ranks have drifted apart, and training stops; resume from an "
           "earlier checkpoint, and look for a machine with faulty memory or a different build");
}

}  // namespace wd
