# wd_commit.cmake: writes OUTPUT, a source with the commit that SOURCE is at, if it has changed. Runs at each
# build: cmake -D SOURCE=... -D OUTPUT=... -P wd_commit.cmake. The commit is empty outside of a Git repository.
set(commit "")
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 "--exclude=*"
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "src/base/version.h"
const char* const wd::kCommit = "@commit@";
]])
