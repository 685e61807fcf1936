// same_config.h: checks that every rank was given the same settings.
#pragma once

#include <string>

#include "wd/process_group.h"

namespace wd {

// `config`: this rank's effective configuration, as print_config() writes it. Throws UsageError that lists
// the lines that differ from rank 0's. All ranks.
void check_same_config(const ProcessGroup& group, const std::string& config);

}  // namespace wd
