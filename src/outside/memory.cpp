// memory.cpp: memfd_create(2), filled at once, so that memory that is missing is missed here and not in a
// step.
#include "src/outside/memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "wd/error.h"

namespace wd::outside {

Memory::Memory(std::size_t bytes) : descriptor_(::memfd_create("wd", MFD_CLOEXEC)), bytes_(bytes) {
  const auto check = [&](int cause) {
    WD_CHECK(cause == 0, bytes,
             " bytes of memory for environments in other processes: ", std::strerror(cause));
  };
  check(descriptor_ ? 0 : errno);
  check(::posix_fallocate(descriptor_.get(), 0, static_cast<off_t>(bytes)));
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_.get(), 0);
  check(data == MAP_FAILED ? errno : 0);
  data_ = static_cast<std::byte*>(data);
}

Memory::~Memory() { ::munmap(data_, bytes_); }

}  // namespace wd::outside
