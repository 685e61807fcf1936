// guarded.cpp: from exceptions to exit codes.
#include "src/launcher/guarded.h"

#include "src/plain_error.h"
#include "wd/error.h"
#include "wd/heartbeat.h"
#include "wd/log.h"

namespace wd {

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
  try {
    const int code = body();
    heartbeat::finished(code);
    return code;
  } catch (const std::exception& error) {
    report_current_exception();
    logging::error(plain_message(error));
    return dynamic_cast<const UsageError*>(&error) != nullptr ? 2 : 1;
  }
}

}  // namespace wd
