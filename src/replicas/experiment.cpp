// experiment.cpp: loads the configuration of an environment that is found by its name.
#include "wd/experiment.h"

#include "src/base/binary_path.h"
#include "src/base/name.h"
#include "src/config/role_names.h"
#include "src/outside/python.h"
#include "src/outside/trust.h"
#include "src/plugin/plugin.h"
#include "wd/detail/parallel.h"
#include "wd/outside.h"

namespace wd {

Describe Experiment::describe() const {
  return [this](Fields& fields) { environment->describe(fields); };
}

namespace {

// `algorithm`: EnvironmentAccess::algorithm.
EnvironmentAccess access_to(Environment& environment, std::string config, std::string algorithm = {}) {
  return {[&environment](Fields& fields) { environment.describe(fields); },
          [&environment] { return environment.spec(); }, std::move(config), std::move(algorithm)};
}

// What the host steps cannot be captured.
void leave_graphs_out(Experiment& setup) {
  if (dynamic_cast<const OutsideEnvironment*>(setup.environment.get()) == nullptr) return;
  TrainerSettings& trainer = setup.config.trainer;
  const auto origin = setup.config.origins.find("trainer.cuda_graphs");
  if (trainer.cuda_graphs && origin != setup.config.origins.end())
    throw UsageError(concat(origin->second, ": trainer.cuda_graphs = true, but the host steps ",
                            setup.config.name, ": leave it out"));
  trainer.cuda_graphs = false;
}

ConfigSources sources_of(const std::string& env, const std::vector<std::string>& settings) {
  ConfigSources sources{.env = env, .search = config_folders()};
  for (const std::string& setting : settings) sources.overrides.push_back(parse_override(setting));
  return sources;
}

Experiment with_device(Experiment setup) {
  setup.device = select_device(static_cast<DeviceRequest>(setup.config.trainer.device), 0);
  if (setup.config.trainer.threads > 0) set_num_threads(setup.config.trainer.threads);
  return setup;
}

}  // namespace

Experiment load_environment(const ConfigSources& given, const std::function<Spec(Environment&)>& spec_of) {
  Experiment setup;
  ConfigSources sources = given;
  sources.of_run = outside::is_of_run(given);
  setup.config = load_config(sources, [&](const std::string& name) {
    if (is_source_file(name)) outside::require_trust(sources, name);
    setup.environment = make_environment(name);
    if (is_source_file(name)) {
      EnvironmentAccess access =
          access_to(*setup.environment, std::filesystem::path(name).replace_extension(".yaml"));
      access.source = plugin::digest_of(name);
      return access;
    }
    if (!is_python_environment(name)) return access_to(*setup.environment, find_environment(name).config);
    EnvironmentAccess access = access_to(*setup.environment, "", "PPO");
    access.spec = [&] {
      if (sources.spec != nullptr) return *sources.spec;
      outside::require_trust(sources, *setup.environment);
      return spec_of ? spec_of(*setup.environment) : setup.environment->spec();
    };
    return access;
  });
  leave_graphs_out(setup);
  return setup;
}

std::vector<std::string> Experiment::policy_names() const { return wd::policy_names(config); }

Experiment load_experiment(const std::string& env, const std::vector<std::string>& settings) {
  return with_device(load_environment(sources_of(env, settings)));
}

Experiment load_experiment(std::unique_ptr<Environment> environment,
                           const std::vector<std::string>& settings) {
  Experiment setup;
  setup.environment = std::move(environment);
  setup.config = load_config(sources_of(std::string(setup.environment->name()), settings),
                             [&](const std::string&) { return access_to(*setup.environment, ""); });
  leave_graphs_out(setup);
  return with_device(std::move(setup));
}

std::vector<std::filesystem::path> config_folders() {
  std::vector<std::filesystem::path> folders = {"configs"};
  const std::vector<std::filesystem::path> prefixes = library_prefixes();
  folders.push_back(prefixes.front() / "configs");  // of the project
  for (const std::filesystem::path& prefix : prefixes) folders.push_back(prefix / "share" / "wd" / "configs");
  return folders;
}

}  // namespace wd
