// lock_test.cpp: who holds a run's folder, and looking at it without disturbing anyone.
#include "src/run/lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "src/base/host.h"
#include "tests/run/temporary_folder.h"
#include "wd/error.h"

namespace wd::run {
namespace {

using test::message_of;
using test::TemporaryFolder;
using testing::HasSubstr;

// Shares the lock, as a reader does.
class SharedLock {
 public:
  explicit SharedLock(const std::filesystem::path& folder)
      : descriptor_(::open((folder / kLockName).c_str(), O_RDWR | O_CREAT, 0666)) {
    EXPECT_EQ(::flock(descriptor_, LOCK_SH | LOCK_NB), 0);
  }
  ~SharedLock() { ::close(descriptor_); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  int descriptor_;
};

TEST(Lock, IsSeenWithItsHolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(look_at_lock(folder.path).state, LockState::kFree);
  {
    const Lock lock(folder.path);
    const LockView view = look_at_lock(folder.path);
    EXPECT_EQ(view.state, LockState::kHeld);
    EXPECT_EQ(view.process, ::getpid());
    EXPECT_EQ(view.host, host_name());
  }
  EXPECT_EQ(look_at_lock(folder.path).state, LockState::kFree);
  EXPECT_EQ(look_at_lock(folder.path).process, ::getpid());  // that held it last
}

TEST(Lock, LookingAtItTwiceDoesNotCountAsHolding) {
  const TemporaryFolder folder;
  const SharedLock reader(folder.path);
  EXPECT_EQ(look_at_lock(folder.path).state, LockState::kFree);
}

TEST(Lock, StartsWhileAReaderLooks) {
  const TemporaryFolder folder;
  auto reader = std::make_unique<SharedLock>(folder.path);
  std::thread end([&reader] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    reader.reset();
  });
  EXPECT_NO_THROW(Lock{folder.path});
  end.join();
}

TEST(Lock, IsRefusedWhileItIsHeld) {
  const TemporaryFolder folder;
  const Lock lock(folder.path);
  EXPECT_THAT(message_of<UsageError>([&] { Lock{folder.path}; }), HasSubstr("is in use by process"));
}

TEST(Lock, OfAnotherKindOfFileIsUnknown) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("elsewhere", folder.path / kLockName);
  EXPECT_EQ(look_at_lock(folder.path).state, LockState::kUnknown);
}

}  // namespace
}  // namespace wd::run
