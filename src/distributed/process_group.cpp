// process_group.cpp: connects the ranks through c10d's store, and wraps c10d's collectives.
#include "wd/process_group.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unordered_map>

#include "src/base/host_memory.h"
#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/device/device.h"
#include "src/device/lockstep.h"
#include "src/device/strict.h"
#include "src/distributed/address.h"
#include "src/distributed/backends.h"
#include "src/distributed/roll_call.h"
#include "src/distributed/sealed_store.h"
#include "src/distributed/shared_memory.h"
#include "wd/heartbeat.h"

namespace wd {

MakeGpuBackend* make_gpu_backend = nullptr;

namespace {

using Clock = std::chrono::steady_clock;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Store open_store(const Membership& self, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(self.master_port);
  options.isServer = self.rank == 0 && !self.store_exists;
  options.waitWorkers = false;
  options.timeout = timeout;
  // The socket is opened here because c10d would listen on all interfaces.
  if (self.store_fd >= 0) ::fcntl(self.store_fd, F_SETFD, FD_CLOEXEC);
  if (options.isServer)
    options.masterListenFd =
        self.store_fd >= 0 ? self.store_fd : listen_on(self.master_addr, self.master_port);
  return c10::make_intrusive<c10d::TCPStore>(self.master_addr, options);
}

// Every connection takes a file descriptor, and anyone who can reach the ports may open connections: at the
// usual limit of 1024, a thousand of them would end this process.
void raise_descriptor_limit() {
  constexpr rlim_t kEnough = rlim_t{1} << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

struct ProcessGroup::Impl {
  Membership self;
  Device device;
  Store store;
  Backend host, accelerator;             // null if this is the only rank
  std::unique_ptr<SharedMemory> memory;  // null unless all ranks are on this machine
  std::atomic<bool> aborted = false;
  double seconds = 0.0;
  std::unordered_map<std::string, std::int64_t> own_counters;  // used if this is the only rank

  // The last handle is gone, and so are the graphs of its owners: NCCL can end in good order. A rank that
  // unwinds an exception does not wait for the others.
  ~Impl() {
    if (!accelerator || aborted || std::uncaught_exceptions() > 0) return;
    try {
      accelerator->shutdown();
    } catch (const std::exception&) {
      // Nothing needs the operations any more.
    }
  }

  const Backend& backend(const at::Tensor& tensor) const {
    WD_CHECK(tensor.is_cpu() || accelerator, "no NCCL for a tensor on ", tensor.device(),
             " in a group of the CPU");
    return tensor.is_cpu() ? host : accelerator;
  }
  // Runs this rank's part of an operation, which may wait for the parts of other ranks.
  template <typename Part>
  auto run(const char* what, Part part) {
    if (Lockstep* const members = Lockstep::current()) members->communicate();
    const heartbeat::Collective inside;
    const NotStrict among_ranks;
    const Clock::time_point start = Clock::now();
    try {
      auto result = part();
      seconds += std::chrono::duration<double>(Clock::now() - start).count();
      return result;
    } catch (const std::exception& error) {
      if (is_out_of_memory(error)) throw;  // of this rank: NCCL's workspace, for example
      throw PeerError(
          concat(what, " of rank ", self.rank, ": another rank does not answer: ", first_line(error.what())));
    }
  }
  template <typename Enqueue>
  void finish(const char* what, Enqueue enqueue) {
    run(what, [&] { return enqueue()->wait(); });
  }
};

ProcessGroup::ProcessGroup() : impl_(std::make_shared<Impl>()) {}

ProcessGroup::ProcessGroup(const Membership& membership, Device device, double timeout_s, double start_s)
    : ProcessGroup() {
  Impl& self = *impl_;
  self.self = membership;
  self.device = device;
  if (membership.alone()) return;
  const std::chrono::milliseconds timeout(static_cast<std::int64_t>(timeout_s * 1e3));
  raise_descriptor_limit();
  if (membership.rank != 0 || membership.store_exists) wait_for_rank_0(membership, start_s);
  Store whole;
  const auto meet = [&](const auto& step) {
    try {
      step();
    } catch (const c10::Error& error) {
      throw PeerError(concat("rank ", membership.rank, " of ", membership.world_size,
                             " does not meet the others at ", membership.master_addr, ":",
                             membership.master_port, ": ", first_line(error.what())));
    }
  };
  meet([&] { whole = open_store(membership, timeout); });
  std::string session;
  meet([&] { session = call_roll(whole, membership, start_s); });
  try {
    const auto part = [&](const char* name) {
      return c10::make_intrusive<c10d::PrefixStore>(
          concat("wd/", membership.run_id, "/", membership.restart, "/", name), whole);
    };
    const auto sealed = [&](const char* name) { return make_sealed(part(name), membership.token, session); };
    self.store = part("counters");
    self.host = make_gloo(sealed("gloo"), membership,
                          address_towards(membership.master_addr, membership.master_port), timeout);
    if (membership.local_world_size == membership.world_size && membership.world_size > 1 &&
        membership.world_size <= SharedMemory::kMostRanks) {
      std::unique_ptr<SharedMemory> memory = SharedMemory::open(
          sealed("memory"), membership.rank, membership.world_size, timeout, [this] { barrier(); });
      const at::Tensor opened = at::full({1}, memory ? 1 : 0, at::kLong);
      all_reduce(opened, ReduceOp::kMin);
      if (opened.item<std::int64_t>() != 0) {
        self.memory = std::move(memory);
      } else if (membership.rank == 0) {
        logging::warn(
            "the workers of this machine cannot share memory (are they in several containers?): they "
            "add gradients through sockets, with the same results, but slower");
      }
    }
    if (device.is_cuda()) self.accelerator = make_gpu_backend(sealed("nccl"), membership, device, timeout);
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    throw PeerError(concat("rank ", membership.rank, " of ", membership.world_size,
                           " does not meet the others at ", membership.master_addr, ":",
                           membership.master_port, ": ", first_line(error.what())));
  }
  if (!device.is_cuda()) return;
  const std::vector<std::string> gpus = all_gather(gpu_identity(device.index));
  for (std::size_t k = 0; k < gpus.size(); ++k) {
    if (static_cast<int>(k) != membership.rank &&
        gpus[k] == gpus[static_cast<std::size_t>(membership.rank)]) {
      throw UsageError(
          concat("ranks ", std::min<int>(static_cast<int>(k), membership.rank), " and ",
                 std::max<int>(static_cast<int>(k), membership.rank), " are both on ", gpus[k],
                 ": each rank needs a GPU of its own; start fewer ranks, or show each of them another GPU"));
    }
  }
}

int ProcessGroup::rank() const { return impl_->self.rank; }
int ProcessGroup::size() const { return impl_->self.world_size; }
Device ProcessGroup::device() const { return impl_->device; }

void ProcessGroup::all_reduce(const at::Tensor& tensor, ReduceOp op) const { begin_all_reduce(tensor, op)(); }

std::function<void()> ProcessGroup::begin_all_reduce(const at::Tensor& tensor, ReduceOp op) const {
  if (!impl_->host) return [] {};
  constexpr const char* kName = "all-reduce";
  if (impl_->memory && SharedMemory::takes(tensor)) {
    const std::uint64_t operation = impl_->run(kName, [&] { return impl_->memory->begin(tensor, op); });
    return [impl = impl_, operation] {
      impl->run(kName, [&] {
        impl->memory->end(operation);
        return true;
      });
    };
  }
  c10d::AllreduceOptions options;
  options.reduceOp = op == ReduceOp::kSum   ? c10d::ReduceOp::SUM
                     : op == ReduceOp::kMax ? c10d::ReduceOp::MAX
                                            : c10d::ReduceOp::MIN;
  std::vector<at::Tensor> tensors = {tensor};
  const c10::intrusive_ptr<c10d::Work> work =
      impl_->run(kName, [&] { return impl_->backend(tensor)->allreduce(tensors, options); });
  return [impl = impl_, work] { impl->run(kName, [&] { return work->wait(); }); };
}

void ProcessGroup::broadcast(const at::Tensor& tensor, int root) const {
  if (!impl_->host) return;
  c10d::BroadcastOptions options;
  options.rootRank = root;
  std::vector<at::Tensor> tensors = {tensor};
  impl_->finish("broadcast", [&] { return impl_->backend(tensor)->broadcast(tensors, options); });
}

void ProcessGroup::barrier() const {
  if (!impl_->host) return;
  impl_->finish("barrier", [&] { return impl_->host->barrier(); });
}

at::Tensor ProcessGroup::all_gather_rows(const at::Tensor& rows) const {
  if (!impl_->host) return rows;
  const NotStrict among_ranks;
  const auto everywhere = [&](const at::Tensor& own) {
    std::vector<std::vector<at::Tensor>> all(1);
    for (int r = 0; r < size(); ++r) all[0].push_back(at::empty_like(own));
    std::vector<at::Tensor> input = {own};
    impl_->finish("all-gather", [&] { return impl_->host->allgather(all, input); });
    return all[0];
  };
  const at::Tensor counts = at::zeros({size()}, at::kLong);
  counts[rank()] = rows.size(0);
  all_reduce(counts);
  const auto max_rows = counts.max().item<std::int64_t>();
  if (max_rows == 0) return rows;
  std::vector<std::int64_t> shape = rows.sizes().vec();
  shape[0] = max_rows;
  at::Tensor padded = at::zeros(shape, rows.options());
  padded.narrow(0, 0, rows.size(0)).copy_(rows);
  std::vector<at::Tensor> parts = everywhere(padded);
  for (std::size_t r = 0; r < parts.size(); ++r)
    parts[r] = parts[r].narrow(0, 0, counts[static_cast<std::int64_t>(r)].item<std::int64_t>());
  return at::cat(parts);
}

at::Tensor ProcessGroup::gather_rows(const at::Tensor& rows) const {
  if (!impl_->host) return rows;
  if (rows.scalar_type() == at::kBFloat16) {  // Gloo does not support bfloat16
    const at::Tensor all = gather_rows(rows.view(at::kByte));
    return all.defined() ? all.view(at::kBFloat16) : all;
  }
  at::Tensor all;
  std::vector<std::vector<at::Tensor>> outputs;
  if (leads()) {
    std::vector<std::int64_t> shape = rows.sizes().vec();
    shape[0] *= size();
    all = at::empty(shape, rows.options());
    outputs.push_back(all.chunk(size()));
  }
  std::vector<at::Tensor> input = {rows};
  impl_->finish("gather", [&] { return impl_->host->gather(outputs, input); });
  return all;
}

void ProcessGroup::scatter_rows(const at::Tensor& all, const at::Tensor& rows) const {
  if (!impl_->host) {
    at::Tensor(rows).copy_(all);
    return;
  }
  if (rows.scalar_type() == at::kBFloat16)
    return scatter_rows(leads() ? all.view(at::kByte) : all, rows.view(at::kByte));
  std::vector<std::vector<at::Tensor>> inputs;
  if (leads()) inputs.push_back(all.chunk(size()));
  std::vector<at::Tensor> output = {rows};
  impl_->finish("scatter", [&] { return impl_->host->scatter(output, inputs); });
}

std::vector<std::string> ProcessGroup::all_gather(const std::string& text) const {
  const auto length = static_cast<std::int64_t>(text.size());
  const at::Tensor lengths = all_gather_rows(at::full({1}, length, at::kLong));
  at::Tensor own = at::empty({length}, at::kByte);
  std::copy(text.begin(), text.end(), own.mutable_data_ptr<std::uint8_t>());
  const at::Tensor all = all_gather_rows(own);
  std::vector<std::string> texts;
  const auto* data = all.const_data_ptr<std::uint8_t>();
  for (int r = 0; r < size(); ++r) {
    const auto end = data + lengths[r].item<std::int64_t>();
    texts.emplace_back(data, end);
    data = end;
  }
  return texts;
}

std::string ProcessGroup::broadcast(const std::string& text) const {
  return all_gather(leads() ? text : "").front();
}

std::int64_t ProcessGroup::add(const std::string& counter, std::int64_t value) const {
  if (!impl_->host) return impl_->own_counters[counter] += value;
  try {
    return impl_->store->add(counter, value);
  } catch (const std::exception& error) {
    throw PeerError(concat("counter ", counter, ": rank 0 does not answer: ", first_line(error.what())));
  }
}

bool ProcessGroup::abort(const std::function<void()>& drop_graphs, double seconds) const {
  if (!impl_->accelerator) return true;
  impl_->aborted = true;
  std::promise<void> promise;
  const std::future<void> done = promise.get_future();
  start_thread([impl = impl_, drop_graphs, promise = std::move(promise)]() mutable {
    try {
      if (impl->device.is_cuda()) use_gpu(impl->device.index);
      drop_graphs();
      impl->accelerator->abort();
    } catch (const std::exception&) {
      // The caller has failed already, and says why.
    }
    impl.reset();
    promise.set_value();
  }).detach();
  return done.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
}

ProcessGroup group_around(const Backend& accelerator) {
  ProcessGroup group;
  group.impl_->accelerator = accelerator;
  return group;
}

double ProcessGroup::take_seconds() const { return std::exchange(impl_->seconds, 0.0); }

}  // namespace wd
