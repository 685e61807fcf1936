// same_config.h: every rank must have been given the same settings.
#pragma once

#include <string>

#include "wd/process_group.h"

namespace wd {

// `config`: this rank's effective configuration, as print_config() writes it. Throws UsageError listing the
// lines that differ from rank 0's. All ranks.
void check_same_config(const ProcessGroup& group, const std::string& config);

}  // namespace wd
