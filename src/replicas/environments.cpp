// environments.cpp: finds environments, and their state fields, by name.
#include "src/base/binary_path.h"
#include "src/base/name.h"
#include "src/base/program_name.h"
#include "src/base/suggest.h"
#include "src/outside/python.h"
#include "src/plugin/plugin.h"
#include "wd/environment.h"
#include "wd/error.h"

namespace wd {

const EnvironmentRow& find_environment(std::string_view name) {
  std::vector<std::string> names;
  for (const EnvironmentRow& row : detail::environment_table()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  const std::string file = concat(name, ".cu");
  if (std::filesystem::exists(file))
    throw UsageError(concat("unknown environment '", name, "'; did you mean the file ./", file, "?"));
  throw UsageError("unknown environment '" + std::string(name) + "'" + suggestion(name, names) +
                   gymnasium_hint(name) + "; `" + program_name() + " envs` lists them");
}

std::unique_ptr<Environment> make_environment(std::string_view name) {
  if (is_source_file(name))
    return plugin::make_environment(std::filesystem::absolute(name).lexically_normal());
  return is_python_environment(name) ? make_python_environment(name)
                                     : make_environment(find_environment(name));
}

std::unique_ptr<Environment> make_environment(const EnvironmentRow& row) {
  return with_sides(row.make(), row.cuda, [row]() -> std::string {
    // The modules of a library or program are in a folder beside it.
    const std::filesystem::path binary = binary_path(reinterpret_cast<const void*>(row.make));
    return binary.empty() ? "" : binary.parent_path() / "wd_emulated" / concat(row.name, ".so");
  });
}

std::unique_ptr<Environment> with_sides(std::unique_ptr<Environment> environment,
                                        std::function<const CudaExecutor*()> cuda,
                                        std::function<std::string()> emulated) {
  environment->cuda_ = std::move(cuda);
  environment->emulated_ = std::move(emulated);
  return environment;
}

const StateField& StateLayout::field(std::string_view name) const {
  std::vector<std::string> names;
  for (const StateField& field : fields) {
    if (field.name == name) return field;
    names.push_back(field.name);
  }
  throw UsageError("the state has no field '" + std::string(name) + "'" + suggestion(name, names));
}

}  // namespace wd
