// version.h: what this program was built from.
#pragma once

namespace wd {

// "0123456789ab", with "-dirty" after it if the sources had changes; empty if they were not in a Git
// repository. cmake/wd_commit.cmake writes its definition.
extern const char* const kCommit;

}  // namespace wd
