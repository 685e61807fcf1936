// new.h: what `wdtrain new` writes from: examples/new/template, which CMake embeds.
#pragma once

namespace wd::cli {

extern const char* const kNewEnvironment;

}  // namespace wd::cli
