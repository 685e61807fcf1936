// guarded.cpp: turns exceptions into exit codes.
#include "src/worker/guarded.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "src/base/log.h"
#include "src/report/plain_error.h"
#include "src/worker/last_words.h"
#include "src/worker/status.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {
namespace {

std::atomic<bool> inside{false};

// Code that calls exit() in the middle, as an environment may, would end an unfinished training with an exit
// code of its choice.
void notice_exit() {
  if (!inside.load() || launcher::launched_status() != nullptr) return;  // a launcher notices by itself
  launcher::write_last_words("exit() was called before the program had finished; throw an exception instead",
                             0);
  ::_exit(EXIT_FAILURE);
}

}  // namespace

void report_current_exception() {
  try {
    throw;
  } catch (const PeerError& error) {
    heartbeat::failed(plain_message(error), true);
  } catch (const std::exception& error) {
    heartbeat::failed(plain_message(error), false);
  }
}

int guarded(const std::function<int()>& body) {
  static const int registered = std::atexit(notice_exit);
  static_cast<void>(registered);
  inside.store(true);
  try {
    const int code = body();
    inside.store(false);
    heartbeat::finished(code);
    return code;
  } catch (const std::exception& error) {
    inside.store(false);
    report_current_exception();
    logging::error(plain_message(error));
    return dynamic_cast<const UsageError*>(&error) != nullptr ? 2 : 1;
  }
}

}  // namespace wd
