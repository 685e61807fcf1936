// population.cpp: runs the members of a population in threads.
#include "src/cli/population.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/base/thread.h"
#include "src/cli/setup.h"
#include "src/device/lockstep.h"
#include "src/report/plain_error.h"
#include "wd/detail/parallel.h"
#include "wd/error.h"

namespace wd::cli {

ConfigSources member_sources(ConfigSources sources, const Config& config, const std::filesystem::path& run,
                             int member) {
  const auto k = static_cast<std::size_t>(member);
  std::erase_if(sources.overrides, [](const Override& one) { return one.option == "--run_dir"; });
  const auto set = [&](const std::string& path, const std::string& text, const std::string& option) {
    sources.overrides.push_back({path, text, option});
  };
  set("members", "null", "--set");
  set("trainer.population", "0", "--set");
  set("trainer.seed", std::to_string(config.trainer.seed + member), "--set");
  for (const auto& [path, values] : config.members)
    set(path, values.at(k), concat("members.", path, ", member ", member));
  set("saving.run_dir", yaml_text((run / std::to_string(member)).string()), "--run_dir");
  return sources;
}

std::vector<int> train_members(const Experiment& setup, const ProcessGroup& group,
                               const std::function<int(int member)>& train,
                               const std::function<void()>& watch) {
  const int members = setup.config.trainer.population;
  std::vector<int> codes(static_cast<std::size_t>(members));
  std::promise<void> worker;  // has the error that ends this worker
  const auto train_one = [&](int member) {
    const logging::Labelled label(concat("member ", member));
    int& code = codes[static_cast<std::size_t>(member)];
    try {
      code = train(member);
    } catch (const std::exception& error) {
      code = dynamic_cast<const UsageError*>(&error) != nullptr ? 2 : 1;
      if (group.size() == 1) return logging::error(plain_message(error));
      logging::warn("this member has failed, and the worker with it, for which the others wait");
      worker.set_exception(std::current_exception());
      // No other member communicates any more: this thread keeps the turn.
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
  };
  std::atomic<int> next{0}, busy{0};
  std::vector<std::thread> threads;
  const bool in_lockstep = setup.device.is_cuda() || group.size() > 1;
  const int count = in_lockstep ? 1 : std::min(members, num_threads());
  busy = count;
  for (int k = 0; k < count; ++k)
    threads.push_back(start_thread([&] {
      if (in_lockstep) {
        Lockstep(members).run(train_one);
      } else {
        const LoopsAlone alone;
        for (int member = next++; member < members; member = next++) train_one(member);
      }
      --busy;
    }));
  std::future<void> failure = worker.get_future();
  while (busy > 0) {
    watch();
    if (failure.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready) continue;
    for (std::thread& thread : threads) thread.detach();
    failure.get();
  }
  for (std::thread& thread : threads) thread.join();
  return codes;
}

int exit_code_of(const std::vector<int>& codes) {
  const int worst = *std::ranges::max_element(codes);
  if (worst > 128) return worst;
  return std::ranges::count(codes, 1) > 0 ? 1 : worst;
}

}  // namespace wd::cli
