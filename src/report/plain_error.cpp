// plain_error.cpp: replaces out-of-memory messages of torch and the standard library by our own.
#include "src/report/plain_error.h"

#include <new>
#include <optional>

#include "src/base/printable.h"
#include "src/base/whole_number.h"
#include "src/report/format.h"
#include "wd/error.h"

namespace wd {
namespace {

// Parses "... you tried to allocate 160160000000 bytes. ...", the message of torch's CPU allocator.
std::optional<std::uint64_t> bytes_asked_for(const std::string& message) {
  constexpr std::string_view kBefore = "you tried to allocate ";
  const std::size_t begin = message.find(kBefore), end = message.find(" bytes", begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return whole_number<std::uint64_t>(message.substr(begin + kBefore.size(), end - begin - kBefore.size()));
}

// Text that torch appends to the message of its own errors.
constexpr const char* kBacktrace = "\nException raised from ";

}  // namespace

std::string plain_message(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return concat("out of memory: cannot allocate more", kLessMemory);
  const std::string text = error.what();
  std::string message = text.substr(0, text.find(kBacktrace));
  if (const auto bytes = bytes_asked_for(message))
    return concat("out of memory: cannot allocate ", report::format_bytes(*bytes), " more", kLessMemory);
  if (message.find("CUDA out of memory") != std::string::npos)
    return concat(first_line(message), kLessMemory);
  return message;
}

}  // namespace wd
