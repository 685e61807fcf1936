// streams.h: standard streams that nobody reads, or that were never opened, do no harm.
#pragma once

namespace wd {

// main() calls this before it opens anything: SIGPIPE is ignored (`wdtrain | head -1` goes on training), as
// is SIGXFSZ (a file at `ulimit -f` is an error of the write, as a full disk is), and a closed descriptor 0,
// 1 or 2 is opened on /dev/null, so that no file of ours takes its number and gets the messages.
void survive_closed_streams();

}  // namespace wd
