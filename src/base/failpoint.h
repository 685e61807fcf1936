// failpoint.h: places in the code that writes, where a test can have the process killed or a call fail. Inert
// without the environment variable WD_FAILPOINT:
//
//   WD_FAILPOINT=NAME:N         the process kills itself (SIGKILL) when it passes NAME for the N-th time
//   WD_FAILPOINT=NAME:N:CAUSE   the N-th call fails instead: ENOSPC, EIO, or short (half is written, then
//   ENOSPC); NAME is then
//                               write, fsync or rename
#pragma once

#include <string_view>

namespace wd {

enum class CallFault { kNone, kNoSpace, kInputOutput, kShort };

// Passes the place: returns, or does not.
void failpoint(std::string_view name);

// Passes a call that can also be made to fail.
CallFault failpoint_of_call(std::string_view name);

// Sets errno as such a fault does. Short writes end in ENOSPC.
void set_errno(CallFault fault);

}  // namespace wd
