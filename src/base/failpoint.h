// failpoint.h: places in code that writes files, at which a test can kill the process or make a call fail.
// They do nothing unless the environment variable WD_FAILPOINT is set:
//
//   WD_FAILPOINT=NAME:N         the process kills itself (SIGKILL) when it passes NAME for the N-th time
//   WD_FAILPOINT=NAME:N:CAUSE   the N-th call of NAME fails instead
//
// In the second form, NAME is write, fsync or rename. CAUSE is ENOSPC, EIO, or short (half of the data is
// written, then the call fails with ENOSPC).
#pragma once

#include <string_view>

namespace wd {

enum class CallFault { kNone, kNoSpace, kInputOutput, kShort };

// Passes the failpoint. May kill the process.
void failpoint(std::string_view name);

// Passes the failpoint of a call, which can also be made to fail. Returns the fault to simulate.
CallFault failpoint_of_call(std::string_view name);

// Sets errno as the fault does. Short writes end in ENOSPC.
void set_errno(CallFault fault);

}  // namespace wd
