// real_environments.h: loads configurations for the environments of the library.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "wd/config.h"
#include "wd/environment.h"

namespace wd::test {

inline std::filesystem::path source_folder() {
  const char* folder = std::getenv("WD_SOURCE_DIR");
  return folder != nullptr ? folder : ".";
}

struct Loaded {
  std::unique_ptr<Environment> environment;
  Config config;

  Describe describe() const {
    return [this](Fields& fields) { environment->describe(fields); };
  }
  // The value of an environment parameter, as text.
  std::string parameter(const std::string& name) const {
    for (const FieldInfo& field : list_fields(describe())) {
      if (field.name == name) return field.value;
    }
    return "no such parameter";
  }
};

// Loads on top of the shipped configurations, as the program does.
inline Loaded load_real(ConfigSources sources) {
  Loaded loaded;
  sources.search = {source_folder() / "configs"};
  loaded.config = load_config(sources, [&](const std::string& name) {
    loaded.environment = make_environment(find_environment(name));
    Environment* const environment = loaded.environment.get();
    return EnvironmentAccess{[environment](Fields& fields) { environment->describe(fields); },
                             [environment] { return environment->spec(); }};
  });
  return loaded;
}

}  // namespace wd::test
