// atomic_file_test.cpp: a replaced file has either the old or the new content.
#include "src/base/atomic_file.h"

#include <gmock/gmock.h>

#include "tests/run/temporary_folder.h"

namespace wd {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::read_text;
using testing::HasSubstr;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, ReplacesTheWholeFile) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path / "a.txt";
  for (const Durability durability : {Durability::kReplace, Durability::kSync}) {
    write_file_atomically(path, "a longer first text", durability);
    write_file_atomically(path, "second", durability);
    EXPECT_EQ(read_text(path), "second");
  }
  EXPECT_EQ(entries(folder.path), 1u) << "no temporary file is left";
}

TEST(AtomicFile, FullDiskLeavesTheOldFile) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path / "a.txt";
  write_file_atomically(path, "old", Durability::kSync);
  {
    const test::FullDisk full(100);
    const std::string text(1000, 'x');
    EXPECT_THAT(message_of([&] { write_file_atomically(path, text, Durability::kSync); }),
                HasSubstr("a.txt.tmp: cannot write: File too large"));
  }
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(entries(folder.path), 1u);
}

TEST(AtomicFile, DoesNotWriteThroughALink) {
  const test::TemporaryFolder folder;
  test::write_text(folder.path / "victim", "untouched");
  fs::create_symlink(folder.path / "victim", folder.path / ".a.txt.tmp");
  EXPECT_THROW(write_file_atomically(folder.path / "a.txt", "new", Durability::kSync), std::runtime_error);
  EXPECT_EQ(read_text(folder.path / "victim"), "untouched");
}

TEST(AtomicFile, MissingFolderIsNamed) {
  EXPECT_THAT(message_of([] { write_file_atomically("/nonexistent/a", "x", Durability::kSync); }),
              HasSubstr("/nonexistent/.a.tmp: cannot open it for writing: No such file or directory"));
}

}  // namespace
}  // namespace wd
