// streams.h: makes closed or unread standard streams harmless.
#pragma once

namespace wd {

// main() calls this before it opens anything. Ignores SIGPIPE, so that `wdtrain | head -1` continues
// training, and SIGXFSZ, so that a file at its `ulimit -f` is a write error like a full disk. Opens a closed
// descriptor 0, 1 or 2 on /dev/null, so that no file of ours gets its number and receives the messages.
void survive_closed_streams();

}  // namespace wd
