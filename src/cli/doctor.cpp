// doctor.cpp: `wdtrain doctor`: what this machine offers to training, and what is wrong with it.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>
#include <thread>

#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/host_memory.h"
#include "src/base/json.h"
#include "src/base/stopwatch.h"
#include "src/base/thread.h"
#include "src/bench/workloads.h"
#include "src/cli/arguments.h"
#include "src/cli/output.h"
#include "src/cli/setup.h"
#include "src/device/gpu.h"
#include "src/device/tensor_device.h"
#include "src/distributed/address.h"
#include "src/report/format.h"
#include "src/report/plain_error.h"
#include "wd/detail/parallel.h"
#include "wd/detail/vectors.h"
#include "wd/process_group.h"

namespace wd::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Environment steps per second of `wdtrain bench --env cartpole --mode train` on 2 cores: 72 thousand of an
// EPYC 7003, 77 thousand of a Xeon at 2.8 GHz (docs/benchmarks). A machine with as many cores that reaches
// less than half of it has a problem.
constexpr double kCartpoleOnTwoCores = 75e3;
constexpr int kCoresOfFigure = 2;

constexpr std::string_view kOk = "ok", kWarning = "warning", kError = "error";

struct Finding {
  std::string text;
  std::string_view level = kOk;
  std::string remedy = {};  // of a warning or an error
  std::string name = {};    // of what was examined; add() says it
};

Finding program() {
  const GpuFacts facts = gpu().facts();
  return {concat("wdtrain " WD_VERSION ", LibTorch " TORCH_VERSION,
                 facts.architectures.empty() ? "" : ", kernels for sm " + facts.architectures)};
}

Finding processors() {
  int nodes = 0;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator("/sys/devices/system/node", none))
    nodes += entry.path().filename().string().starts_with("node") ? 1 : 0;
  const int usable = available_processors();
  const std::string quota = read_whole("/sys/fs/cgroup/cpu.max").value_or("");
  std::string text =
      concat(cpu_model(), ", ", report::counted(usable, "processor"), ", ", vectors_in_words());
  if (nodes > 1) text += concat(" on ", report::counted(nodes, "NUMA node"));
  // "200000 100000": microseconds of processor time per period.
  const double share = std::strtod(quota.c_str(), nullptr);
  const std::size_t space = quota.find(' ');
  if (share > 0.0 && space != std::string::npos) {
    const double cores = share / std::strtod(quota.c_str() + space, nullptr);
    if (cores < usable) {
      return {concat(text, "; the control group grants the time of ", report::format_number("%.1f", cores)),
              kWarning, "set trainer.threads to that number, because more threads wait for one another"};
    }
  }
  return {text};
}

Finding memory() {
  constexpr std::uint64_t kLittle = std::uint64_t{1} << 30;
  const Allowance budget = memory_budget(machine_memory());
  const std::string text = concat(report::format_bytes(budget.bytes), " can be used (", budget.source, ")");
  if (budget.bytes >= kLittle) return {text};
  return {text, kWarning, "free memory, or raise the limit that is named"};
}

Finding open_files() {
  constexpr rlim_t kFew = 1024;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::string text = concat(limit.rlim_cur, " open files");
  if (limit.rlim_cur >= kFew) return {text};
  return {text, kWarning, concat("several workers may need more: ulimit -n ", kFew)};
}

// NCCL exchanges data of one machine's GPUs through it.
Finding shared_memory_folder() {
  constexpr std::uint64_t kPerGpu = std::uint64_t{64} << 20;
  struct statvfs room{};
  if (::statvfs("/dev/shm", &room) != 0)
    return {"cannot be read", kWarning, "mount a tmpfs there if several GPUs are used"};
  const std::uint64_t bytes = room.f_bavail * room.f_frsize;
  const std::string text = concat(report::format_bytes(bytes), " free");
  const int gpus = count_gpus();
  if (gpus < 2 || bytes >= kPerGpu * static_cast<std::uint64_t>(gpus)) return {text};
  return {text, kError, "make it larger: docker run --shm-size=1g, or mount -o remount,size=1g"};
}

// Writes and flushes a file where runs are kept.
Finding disk(const fs::path& folder, bool quick) {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  fs::path place = folder;
  while (!place.empty() && !fs::exists(place)) place = place.parent_path();
  if (place.empty()) place = ".";
  const std::string room =
      concat(report::format_bytes(fs::space(place).available), " free in ", place.string());
  const fs::path path = place / concat(".wd_doctor_", ::getpid());
  try {
    File file(path, O_WRONLY | O_CREAT | O_EXCL, FileKind::kOwn);
    const std::vector<std::byte> bytes(quick ? 1 : kBytes);
    const Stopwatch watch;
    file.write(bytes);
    file.sync();
    const double seconds = watch.seconds();
    fs::remove(path);
    return {quick ? room : concat(room, ", ", report::format_number("%.0f MB/s", 1e-6 * kBytes / seconds))};
  } catch (const std::exception& error) {
    std::error_code gone;
    fs::remove(path, gone);
    return {concat(room, "; ", error.what()), kError, "runs are written there: choose --run_dir"};
  }
}

// Several, unless there is no GPU.
std::vector<Finding> all_gpus() {
  const std::string why = why_no_gpu();
  if (!why.empty() && gpu().is_broken())
    return {{"this machine seems to have one that cannot be used: " + why, kError,
             "mend the driver or the build, or choose --device cpu", "gpu"}};
  if (!why.empty()) return {{.text = "none: " + why + "; training runs on the CPU", .name = "gpu"}};
  const GpuFacts facts = gpu().facts();
  std::vector<Finding> findings = {
      {.text = concat("driver for CUDA ", facts.driver, ", runtime ", facts.runtime), .name = "cuda"}};
  for (std::size_t g = 0; g < facts.gpus.size(); ++g) {
    const GpuFacts::Gpu& one = facts.gpus[g];
    Finding& finding = findings.emplace_back();
    finding.name = concat("gpu ", g);
    finding.text = concat(one.name, ", ", report::format_bytes(one.bytes), ", compute capability ", one.major,
                          ".", one.minor, ", at ", one.place);
    if (const std::string unfit = gpu().why_unfit(static_cast<int>(g)); !unfit.empty()) {
      finding.level = kError;
      finding.remedy = unfit;
    } else if (one.peers.size() + 1 < facts.gpus.size()) {
      finding.level = kWarning;
      finding.remedy = "it reads the memory of other GPUs through the host: all-reduces are slower";
    }
  }
  Finding& nccl = findings.emplace_back();
  nccl.name = "nccl";
  nccl.text = concat("compiled with ", facts.nccl_header, ", loaded ", facts.nccl_library);
  if (facts.nccl_header != facts.nccl_library) {
    nccl.level = kWarning;
    nccl.remedy = "another NCCL is found first: look at LD_LIBRARY_PATH";
  }
  return findings;
}

// Two ranks, as threads of this process, on two GPUs or on the CPU.
Finding all_reduce() {
  constexpr std::int64_t kFloats = 1 << 20;
  const bool gpus = count_gpus() >= 2;
  const int store = listen_on("127.0.0.1", 0);
  std::string failure;
  double seconds = 0.0;
  const auto rank = [&](int r) {
    try {
      Membership self;
      self.rank = self.local_rank = r;
      self.world_size = self.local_world_size = 2;
      self.master_addr = "127.0.0.1";
      self.master_port = port_of(store);
      self.store_fd = r == 0 ? store : -1;
      const Device device = gpus ? Device{DeviceKind::kCuda, r} : Device{};
      if (gpus) use_gpu(r);
      const ProcessGroup group(self, device, 20.0, 20.0);
      const at::Tensor tensor = at::full({kFloats}, r + 1.0, at::TensorOptions(torch_device(device)));
      group.all_reduce(tensor.clone());
      synchronize(device);
      const Stopwatch watch;
      group.all_reduce(tensor);
      synchronize(device);
      if (r != 0) return;
      seconds = watch.seconds();
      if (tensor[kFloats - 1].item<float>() != 3.0f) failure = "the sum is wrong";
    } catch (const std::exception& error) {
      failure = plain_message(error);
    }
  };
  std::thread other = start_thread(rank, 1);
  rank(0);
  other.join();
  const char* const library = gpus ? "NCCL" : "Gloo";
  if (!failure.empty()) {
    return {concat(library, ": ", failure), kError,
            "several workers cannot train together: look at the firewall of the loopback interface"};
  }
  return {
      concat("4 MiB over two ranks with ", library, " in ", report::format_number("%.1f ms", 1e3 * seconds))};
}

Finding speed() {
  const Experiment setup = load_setup({.env = "cartpole", .search = config_folders()});
  const bench::Result result = bench::bench_train({setup.config, *setup.environment, setup.device, 2.0});
  const double steps = bench::to_json(result, {})["env_steps_per_s"];
  const std::string text =
      concat("training cartpole: ", report::format_count(steps), " steps/s on ", describe(setup.device));
  if (setup.device.is_cuda() || available_processors() != kCoresOfFigure) return {text};
  const std::string against =
      concat(text, "; a machine of 2 cores is known to reach ", report::format_count(kCartpoleOnTwoCores));
  if (steps >= 0.5 * kCartpoleOnTwoCores) return {against};
  return {against, kWarning, "another program may use the processors, or their clock is throttled"};
}

std::vector<Finding> examine(const fs::path& folder, bool quick) {
  std::vector<Finding> findings;
  const auto add = [&](const char* name, const std::function<Finding()>& look) {
    try {
      findings.push_back(look());
    } catch (const std::exception& error) {
      findings.push_back({plain_message(error), kError, "see the message"});
    }
    findings.back().name = name;
  };
  add("program", program);
  add("processor", processors);
  add("memory", memory);
  add("limits", open_files);
  add("/dev/shm", shared_memory_folder);
  add("disk", [&] { return disk(folder, quick); });
  std::ranges::copy(all_gpus(), std::back_inserter(findings));
  if (quick) return findings;
  add("all-reduce", all_reduce);
  add("speed", speed);
  return findings;
}

std::string text_of(const std::vector<Finding>& findings) {
  std::vector<std::vector<std::string>> rows;
  for (const Finding& one : findings) {
    rows.push_back({std::string(one.level), one.name, one.text});
    if (!one.remedy.empty()) rows.push_back({"", "", "-> " + one.remedy});
  }
  return table(rows, 0);
}

std::string json_of(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& one : findings) {
    list.push_back({{"name", one.name}, {"level", one.level}, {"text", one.text}});
    if (!one.remedy.empty()) list.back()["remedy"] = one.remedy;
  }
  return dump(list, 1) + "\n";
}

}  // namespace

int doctor(const CommandLine& line) {
  Arguments arguments(
      line, "doctor",
      "Examine this machine: processors, memory, GPUs, disk, all-reduce, speed. Exits with 1 if "
      "something keeps training from working.");
  bool json = false, quick = false;
  std::string folder = "runs";
  arguments.flag("--json", json, "as JSON");
  arguments.flag("--quick", quick, "leave out what takes seconds: disk speed, all-reduce, training");
  arguments.option("--run_dir", folder, "FOLDER", "where runs will be written (runs)");
  if (!arguments.parse()) return 0;
  const std::vector<Finding> findings = examine(folder, quick);
  print(json ? json_of(findings) : text_of(findings));
  return std::ranges::find(findings, kError, &Finding::level) == findings.end() ? 0 : 1;
}

}  // namespace wd::cli
