// log_test.cpp: messages reach stderr and log.txt.
#include "src/base/log.h"

#include <gmock/gmock.h>

#include "tests/run/temporary_folder.h"
#include "wd/error.h"

namespace wd {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// The first test, because a process has one logger, whose early messages go to the first file, and quiet() is
// permanent.
TEST(Log, StderrAndFile) {
  const test::TemporaryFolder folder;
  const auto path = folder.path / "log.txt";

  testing::internal::CaptureStderr();
  logging::info("before the run");
  logging::attach_file(path);
  logging::info("{} is text, not a pattern");
  logging::warn("mind\x1b[31m this");
  logging::error("broken");
  logging::quiet();
  logging::info("for the file alone");
  logging::to_file("told otherwise");
  logging::detach_file();
  logging::to_file("to no file");
  logging::error("after the run");
  const std::string console = testing::internal::GetCapturedStderr();
  const std::string file = test::read_text(path);

  EXPECT_EQ(console,
            "before the run\n{} is text, not a pattern\nwarning: mind?[31m this\nerror: broken\n"
            "error: after the run\n");
  EXPECT_THAT(
      file, MatchesRegex("[0-9-]+ [0-9:.]+ info: before the run\n[^\n]+ info: \\{\\} is text, not a pattern\n"
                         "[^\n]+ warning: mind\\?\\[31m this\n[^\n]+ error: broken\n"
                         "[^\n]+ info: for the file alone\n[^\n]+ info: told otherwise\n"));
}

TEST(Log, AFullDiskIsReportedOnceAndThrowsNothing) {
  constexpr std::size_t kFull = 100'000;  // more than the file that captures stderr gets
  const test::TemporaryFolder folder;
  test::write_text(folder.path / "log.txt", std::string(kFull, '\n'));
  logging::attach_file(folder.path / "log.txt");
  testing::internal::CaptureStderr();
  {
    const test::FullDisk full(kFull);
    logging::to_file("lost");
    logging::warn("on stderr alone");
    logging::to_file("lost too");
  }
  logging::to_file("kept");
  logging::detach_file();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            concat("error: ", (folder.path / "log.txt").string(),
                   ": cannot write: File too large: messages are missing there\nwarning: on stderr alone\n"));
  EXPECT_THAT(test::read_text(folder.path / "log.txt"), HasSubstr("info: kept\n"));
}

TEST(Log, FileThatCannotBeOpened) {
  EXPECT_THAT(test::message_of([] { logging::attach_file("/proc/nowhere/log.txt"); }),
              HasSubstr("/proc/nowhere/log.txt"));
}

}  // namespace
}  // namespace wd
