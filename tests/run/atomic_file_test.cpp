// atomic_file_test.cpp: a replaced file has either the old or the new content.
#include "src/base/atomic_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "src/base/files.h"
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

TEST(AtomicFile, ReplacesWhatLeadsElsewhere) {
  const test::TemporaryFolder folder;
  const fs::path victim = folder.path / "victim", path = folder.path / "a.txt";
  const auto link = [&](const fs::path& at) { fs::create_symlink(victim, at); };
  const auto name = [&](const fs::path& at) { fs::create_hard_link(victim, at); };
  const auto pipe = [](const fs::path& at) { ASSERT_EQ(::mkfifo(at.c_str(), 0666), 0); };
  for (const std::function<void(const fs::path&)>& make : {std::function(link), {name}, {pipe}}) {
    for (const char* const at : {"a.txt", ".a.txt.tmp"}) {
      fs::remove(path);
      test::write_text(victim, "untouched");
      make(folder.path / at);
      write_file_atomically(path, "new", Durability::kReplace);
      EXPECT_EQ(read_text(victim), "untouched");
      EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(path)));
      EXPECT_EQ(read_text(path), "new");
    }
  }
}

TEST(AtomicFile, ANamedFileIsKeptIfItsTextCannotBeProduced) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path / "a.txt";
  test::write_text(path, "old");
  const auto fail = [](const Append& append) {
    append("a part");
    throw std::runtime_error("no more");
  };
  EXPECT_THAT(message_of([&] { write_named_file(path, fail); }), HasSubstr("no more"));
  EXPECT_EQ(read_text(path), "old");
  EXPECT_EQ(entries(folder.path), 1u);
}

TEST(AtomicFile, AFolderThatIsALinkIsRefused) {
  const test::TemporaryFolder folder;
  make_own_folder(folder.path / "own");
  make_own_folder(folder.path / "own");
  fs::create_directory_symlink(folder.path / "own", folder.path / "link");
  EXPECT_THAT(message_of([&] { make_own_folder(folder.path / "link"); }),
              HasSubstr("link: is a link, which is not followed; remove it"));
}

TEST(AtomicFile, MissingFolderIsNamed) {
  EXPECT_THAT(message_of([] { write_file_atomically("/nonexistent/a", "x", Durability::kSync); }),
              HasSubstr("/nonexistent/.a.tmp: cannot open it for writing: No such file or directory"));
}

}  // namespace
}  // namespace wd
