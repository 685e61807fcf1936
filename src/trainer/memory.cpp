// memory.cpp: moves what algorithms remember of former rollouts between the ranks' devices and files, in
// pieces that pass through rank 0.
#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "src/checkpoint/safetensors_header.h"
#include "src/trainer/impl.h"
#include "wd/error.h"
#include "wd/safetensors.h"

namespace wd {

namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{64} << 20;  // of all ranks together

std::int64_t row_bytes(const at::Tensor& rows) {  // of one entry of one replica
  return rows.element_size() * c10::multiply_integers(rows.sizes().slice(2));
}

// Calls f(replica, replicas, entry, entries) for parts of a tensor [replicas, entries, ...] that are not
// larger than a piece: several replicas, or some entries of one. The same parts on all ranks.
template <typename F>
void each_piece(const at::Tensor& rows, int ranks, const F& f) {
  const std::int64_t E = rows.size(0), F_ = rows.size(1);
  const std::int64_t entries = std::clamp<std::int64_t>(kPieceBytes / (ranks * row_bytes(rows)), 1, F_);
  const std::int64_t replicas =
      entries < F_ ? 1 : std::max<std::int64_t>(kPieceBytes / (ranks * row_bytes(rows) * F_), 1);
  for (std::int64_t e = 0; e < E; e += replicas)
    for (std::int64_t c = 0; c < F_; c += entries)
      f(e, std::min(replicas, E - e), c, std::min(entries, F_ - c));
}

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<std::size_t>(tensor.nbytes())};
}

// Whether there is nothing to write or to read.
bool is_empty(const std::vector<NamedTensor>& memory) {
  return memory.empty() || memory.front().tensor.size(1) == 0;
}

// The tensors of all ranks in a file.
std::vector<TensorInfo> infos_of(const std::vector<NamedTensor>& memory, int ranks) {
  std::vector<TensorInfo> infos;
  for (const NamedTensor& named : memory) {
    std::vector<std::int64_t> shape = named.tensor.sizes().vec();
    shape[0] *= ranks;
    infos.push_back({.name = named.name, .dtype = dtype_of(named.tensor.scalar_type()), .shape = shape});
  }
  return infos;
}

// Where a piece of rank r begins in the file's tensor.
std::uint64_t offset_of(const at::Tensor& rows, int rank, std::int64_t replica, std::int64_t entry) {
  return static_cast<std::uint64_t>(((rank * rows.size(0) + replica) * rows.size(1) + entry) *
                                    row_bytes(rows));
}

void write(const ProcessGroup& group, const NamedTensor& named, SafetensorsWriter* writer,
           std::exception_ptr& failure) {
  each_piece(named.tensor, group.size(), [&](std::int64_t e, std::int64_t k, std::int64_t c, std::int64_t n) {
    const at::Tensor own = named.tensor.narrow(0, e, k).narrow(1, c, n).contiguous().cpu();
    const at::Tensor all = group.gather_rows(own);
    if (writer == nullptr || failure) return;  // the other ranks go on with their part
    try {
      for (int r = 0; r < group.size(); ++r)
        writer->write(named.name, offset_of(named.tensor, r, e, c), bytes_of(all.narrow(0, r * k, k)));
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
  });
}

void read(const ProcessGroup& group, const NamedTensor& named, const SafetensorsReader* reader) {
  each_piece(named.tensor, group.size(), [&](std::int64_t e, std::int64_t k, std::int64_t c, std::int64_t n) {
    const at::Tensor into = named.tensor.narrow(0, e, k).narrow(1, c, n);
    const at::Tensor own = at::empty(into.sizes(), into.options().device(at::kCPU));
    std::vector<std::int64_t> shape = own.sizes().vec();
    shape[0] *= group.size();
    at::Tensor all;
    if (reader != nullptr) {
      all = at::empty(shape, own.options());
      for (int r = 0; r < group.size(); ++r)
        reader->read_part(named.name, offset_of(named.tensor, r, e, c), bytes_of(all.narrow(0, r * k, k)));
    }
    group.scatter_rows(all, own);
    into.copy_(own);
  });
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw UsageError(concat(path.string(), ": ", reason, ": delete ", path.parent_path().string(),
                          " to go on without replay memories, which are then filled anew; or go on from "
                          "another checkpoint"));
}

void check_tensors(const std::filesystem::path& path, const SafetensorsReader& reader,
                   const std::vector<TensorInfo>& infos) {
  for (const TensorInfo& info : infos) {
    const TensorInfo* const found = reader.find(info.name);
    if (found != nullptr && found->dtype == info.dtype && found->shape == info.shape) continue;
    const std::string here = found == nullptr ? "there is none" : describe_tensor(found->dtype, found->shape);
    refuse(path, concat("tensor '", info.name, "': this training has ",
                        describe_tensor(info.dtype, info.shape), " [replicas, entries, ...], and ", here));
  }
  for (const TensorInfo& other : reader.tensors())
    if (std::ranges::none_of(infos, [&](const TensorInfo& info) { return info.name == other.name; }))
      refuse(path, concat("tensor '", other.name, "': is not expected"));
}

}  // namespace

bool Trainer::has_memory() const {
  return std::ranges::any_of(impl_->learners,
                             [](const Learner& learner) { return !learner.algorithm().memory(0).empty(); });
}

double Trainer::memory_bytes() const {
  double bytes = 0.0;
  constexpr std::int64_t kLate = std::int64_t{1} << 40;  // memories are full after so many iterations
  for (const Learner& learner : impl_->learners)
    for (const NamedTensor& named : learner.algorithm().memory(kLate))
      bytes += static_cast<double>(named.tensor.nbytes());
  return bytes * impl_->group.size();
}

std::map<std::string, std::filesystem::path> Trainer::write_memory(
    const std::filesystem::path& folder) const {
  const ProcessGroup& group = impl_->group;
  std::map<std::string, std::filesystem::path> files;
  std::exception_ptr failure;
  for (std::size_t p = 0; p < impl_->learners.size(); ++p) {
    const std::vector<NamedTensor> memory = impl_->learners[p].algorithm().memory(impl_->counts.iteration);
    if (is_empty(memory)) continue;
    std::optional<SafetensorsWriter> writer;
    const std::string& name = impl_->policies[p].name();
    if (group.leads() && !failure) {
      try {
        std::filesystem::create_directories(folder);
        files[name] = folder / (name + ".safetensors");
        writer.emplace(files[name], infos_of(memory, group.size()));
      } catch (const std::exception&) {
        failure = std::current_exception();
      }
    }
    for (const NamedTensor& named : memory) write(group, named, writer ? &*writer : nullptr, failure);
  }
  if (failure) std::rethrow_exception(failure);
  return files;
}

bool Trainer::read_memory(const std::map<std::string, std::filesystem::path>& files) {
  const ProcessGroup& group = impl_->group;
  impl_->memory_awaited = false;
  const auto check = [&](const Algorithm& algorithm, const std::filesystem::path& file) {
    for (const std::string& fault : group.all_gather(algorithm.memory_fault(impl_->counts.iteration)))
      if (!fault.empty()) refuse(file, fault);
  };
  bool whole = true;
  for (std::size_t p = 0; p < impl_->learners.size(); ++p) {
    Algorithm& algorithm = impl_->learners[p].algorithm();
    const std::vector<NamedTensor> memory = algorithm.memory(impl_->counts.iteration);
    const auto found = files.find(impl_->policies[p].name());
    const std::filesystem::path file = group.broadcast(found != files.end() ? found->second.string() : "");
    if (is_empty(memory)) {
      check(algorithm, file);
      continue;
    }
    whole = whole && !file.empty();
    if (file.empty()) {
      algorithm.forget(impl_->counts.iteration);
      continue;
    }
    std::optional<SafetensorsReader> reader;
    if (group.leads()) {
      try {
        reader.emplace(found->second);
      } catch (const std::runtime_error& cause) {
        refuse(found->second, reason_of(found->second, cause));
      }
      check_tensors(found->second, *reader, infos_of(memory, group.size()));
    }
    for (const NamedTensor& named : memory) read(group, named, reader ? &*reader : nullptr);
    check(algorithm, file);
    algorithm.memory_changed();
  }
  return whole;
}

}  // namespace wd
