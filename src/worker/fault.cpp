// fault.cpp: parses faults, and injects each kind.
#include "src/worker/fault.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <new>
#include <stdexcept>

#include "src/base/whole_number.h"
#include "wd/error.h"

namespace wd {

namespace {

constexpr std::array kPlain = {"throw", "kill", "segv", "hang", "oom", "drift"};
constexpr std::array kTensors = {"observation", "reward", "loss", "gradient", "weight"};

// Returns -1 if the text is not a whole number from 0 on.
std::int64_t number(const std::string& text) {
  const std::int64_t value = whole_number<std::int64_t>(text).value_or(-1);
  return value >= 0 ? value : -1;
}

bool is_kind(const Fault& fault) {
  const auto among = [](const auto& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (fault.kind == "exit") return number(fault.argument) >= 0 && number(fault.argument) < 256;
  if (fault.kind == "slow") return number(fault.argument) >= 0;
  if (fault.kind == "nan") return among(kTensors, fault.argument);
  return among(kPlain, fault.kind) && fault.argument.empty();
}

}  // namespace

Fault parse_fault(const std::string& text) {
  Fault fault;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::string key = part.substr(0, part.find('=') + 1);
    if (key == "iter=") fault.iteration = number(part.substr(5));
    if (key == "rank=") fault.rank = static_cast<int>(number(part.substr(5)));
    if (key == "times=") fault.times = static_cast<int>(number(part.substr(6)));
    if (part.starts_with("kind=")) {
      const std::size_t colon = part.find(':');
      fault.kind = part.substr(5, colon == std::string::npos ? colon : colon - 5);
      fault.argument = colon == std::string::npos ? "" : part.substr(colon + 1);
    }
    if (key != "iter=" && key != "rank=" && key != "times=" && key != "kind=") fault.iteration = -1;
    begin = end + 1;
  }
  if (fault.iteration < 1 || fault.rank < 0 || fault.times < 1 || !is_kind(fault)) {
    throw UsageError(
        "--fault " + text +
        ": expected [rank=R,][times=N,]iter=I,kind=throw|kill|segv|hang|exit:K|oom|drift|nan:TENSOR|slow:MS, "
        "R "
        "counted from 0, I from 1, TENSOR being observation, reward, loss, gradient or weight");
  }
  return fault;
}

std::chrono::microseconds Fault::delay(std::int64_t now, std::int64_t steps) const {
  const bool slow = kind == "slow" && now >= iteration;
  return std::chrono::microseconds(slow ? 1000 * number(argument) / steps : 0);
}

void Fault::inject(std::int64_t now) const {
  if (now != iteration) return;
  if (kind == "throw") throw std::runtime_error(concat("fault on purpose in iteration ", now));
  if (kind == "kill") std::raise(SIGKILL);
  if (kind == "segv") std::raise(SIGSEGV);
  if (kind == "exit") ::_exit(static_cast<int>(number(argument)));
  if (kind == "oom") throw std::bad_alloc();
  while (kind == "hang") ::pause();
}

}  // namespace wd
