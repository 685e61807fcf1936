// safetensors_test.cpp: tensors are restored exactly; files with wrong claims are rejected.
#include "wd/safetensors.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <array>
#include <ctime>
#include <random>

#include "tests/run/temporary_folder.h"
#include "tests/slowdown.h"
#include "wd/error.h"

namespace wd {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::TemporaryFolder;
using testing::HasSubstr;

constexpr std::array<float, 6> kWeights{0.0f, -1.5f, 3.25f, 1e-30f, 7.0f, -0.0f};
constexpr std::array<std::int64_t, 2> kStored{-1, 1LL << 40};
constexpr std::array<std::uint8_t, 3> kMask{1, 0, 1};

std::vector<TensorView> sample() {
  return {{"mask", "U8", {3}, std::as_bytes(std::span(kMask))},
          {"weight", "F32", {2, 3}, std::as_bytes(std::span(kWeights))},
          {"empty", "F32", {0, 4}, {}},
          {"scalar", "F32", {}, std::as_bytes(std::span(kWeights).first(1))},
          {"counts", "I64", {2}, std::as_bytes(std::span(kStored))}};
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data_bytes, '\0');
}

void open(const fs::path& path) { SafetensorsReader{path}; }

TEST(Safetensors, RoundTrip) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "a.safetensors";
  write_safetensors(path, sample(), {{"policy", "tagger"}, {"quote", "\"\\\n"}});

  const SafetensorsReader file(path);
  EXPECT_EQ(file.metadata(), (TensorMetadata{{"policy", "tagger"}, {"quote", "\"\\\n"}}));
  ASSERT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(file.find("absent"), nullptr);
  for (const TensorInfo& tensor : file.tensors()) EXPECT_EQ(tensor.begin % dtype_bytes(tensor.dtype), 0u);

  for (const TensorView& tensor : sample()) {
    std::vector<std::byte> bytes(tensor.bytes.size());
    file.read(tensor.name, tensor.dtype, tensor.shape, bytes);
    EXPECT_TRUE(std::ranges::equal(bytes, tensor.bytes)) << tensor.name;
  }
}

TEST(Safetensors, AFileWithoutTensors) {
  const TemporaryFolder folder;
  write_safetensors(folder.path / "a", {});
  EXPECT_TRUE(SafetensorsReader(folder.path / "a").tensors().empty());
}

TEST(Safetensors, ReadNamesWhatDiffers) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "a";
  write_safetensors(path, sample());
  const SafetensorsReader file(path);
  std::array<std::byte, 24> into;
  const auto read = [&](const char* name, const char* dtype, std::vector<std::int64_t> shape) {
    return message_of([&] { file.read(name, dtype, shape, into); });
  };
  EXPECT_THAT(read("weight", "F32", {3, 2}), HasSubstr("is F32 [2, 3] where F32 [3, 2] is expected"));
  EXPECT_THAT(read("weight", "I32", {2, 3}), HasSubstr("is F32 [2, 3] where I32 [2, 3] is expected"));
  EXPECT_THAT(read("bias", "F32", {3}), HasSubstr("has no tensor 'bias'"));
  EXPECT_THAT(read("scalar", "F32", {}), HasSubstr("buffer of 24 bytes for 4"));
}

TEST(Safetensors, WriterChecksWhatItIsGiven) {
  const TemporaryFolder folder;
  const auto write = [&](std::vector<TensorView> tensors) {
    return message_of([&] { write_safetensors(folder.path / "a", tensors); });
  };
  const auto bytes = std::as_bytes(std::span(kWeights));
  EXPECT_THAT(write({{"a", "F32", {5}, bytes}}), HasSubstr("has 24 bytes where F32 [5] needs 20"));
  EXPECT_THAT(write({{"a", "F33", {6}, bytes}}), HasSubstr("unknown dtype 'F33'"));
  EXPECT_THAT(write({{"a", "F32", {-6}, bytes}}), HasSubstr("negative"));
  EXPECT_THAT(write({{"a", "F32", {6}, bytes}, {"a", "F32", {6}, bytes}}), HasSubstr("taken"));
  EXPECT_THAT(write({{"__metadata__", "F32", {6}, bytes}}), HasSubstr("reserved"));
  EXPECT_TRUE(fs::is_empty(folder.path));
}

struct Hostile {
  const char* header;
  std::size_t data_bytes;
  const char* message;
};

class HostileHeader : public testing::TestWithParam<Hostile> {};

TEST_P(HostileHeader, IsRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "bad.safetensors";
  test::write_text(path, file_of(GetParam().header, GetParam().data_bytes));
  const std::string message = message_of([&] { open(path); });
  EXPECT_THAT(message, HasSubstr(GetParam().message));
  EXPECT_THAT(message, HasSubstr(path.string()));
}

INSTANTIATE_TEST_SUITE_P(
    Table, HostileHeader,
    testing::Values(
        Hostile{"", 0, "does not begin with {"}, Hostile{"[]", 0, "does not begin with {"},
        Hostile{"{", 0, "not JSON"}, Hostile{"{\"\xff\":1}", 0, "not JSON"},
        Hostile{R"({"a":1})", 0, "must have dtype, shape, data_offsets"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1]}})", 0, "must have dtype, shape, data_offsets"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "nothing else"},
        Hostile{R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4, "string dtype"},
        Hostile{R"({"a":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "list shape"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 8, "two data_offsets"},
        Hostile{R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype 'F31'"},
        Hostile{R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole numbers"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "whole numbers"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1e1]}})", 4, "whole numbers"},
        Hostile{R"({"a":{"dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4]}})", 4,
                "whole numbers"},
        Hostile{R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
                "too large"},
        Hostile{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
                "has 4 bytes where F32 [2] needs 8"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "ends before it begins"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, "beyond the end"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
                "1 bytes that belong to no tensor"},
        Hostile{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "begins at byte 4"},
        Hostile{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                   "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                12, "'b' begins at byte 4"},
        Hostile{R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                   "a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                1, "\"a\" twice"},
        Hostile{R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", 1,
                "\"dtype\" twice"},
        Hostile{R"({"a":{"dtype":"U8","shape":[[[[1]]]],"data_offsets":[0,1]}})", 1, "too deeply"},
        Hostile{R"({"__metadata__":{"a":1}})", 0, "must be a string"},
        Hostile{R"({"__metadata__":[]})", 0, "object of strings"}));

TEST(Safetensors, C6_LengthOfTheHeaderIsNotTrusted) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "a";
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{3}}) {
    test::write_text(path, std::string(reinterpret_cast<const char*>(&length), sizeof length) + "{}");
    EXPECT_THAT(message_of([&] { open(path); }), HasSubstr("claims a header of"));
  }
  test::write_text(path, file_of("{" + std::string(std::size_t{5} << 20, ' ') + "}", 0));
  EXPECT_THAT(message_of([&] { open(path); }), HasSubstr("above the limit"));
}

TEST(Safetensors, C3_EveryTruncationIsNoticed) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "a";
  write_safetensors(path, sample(), {{"k", "v"}});
  const std::string whole = test::read_text(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    test::write_text(path, whole.substr(0, length));
    EXPECT_THROW(open(path), std::runtime_error) << length;
  }
}

TEST(Safetensors, DamageIsRefusedOrHarmless) {
  const TemporaryFolder folder;
  const fs::path path = folder.path / "a";
  write_safetensors(path, sample(), {{"k", "v"}});
  const std::string whole = test::read_text(path);
  std::minstd_rand random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string damaged = whole;
    for (int i = 0; i <= trial % 3; ++i)
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    test::write_text(path, damaged);
    try {
      const SafetensorsReader file(path);
      for (const TensorInfo& tensor : file.tensors()) {
        std::vector<std::byte> into(tensor.bytes);
        file.read(tensor.name, tensor.dtype, tensor.shape, into);
      }
    } catch (const std::runtime_error&) {
    }
  }
}

TEST(Safetensors, OnlyRegularFiles) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder.path / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of([&] { open(folder.path / "pipe"); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message_of([&] { open(folder.path); }), HasSubstr("not a regular file"));
  EXPECT_THAT(message_of([&] { open(folder.path / "none"); }), HasSubstr("cannot read it: No such file"));
}

// C6: the longest header has tens of thousands of tensors. The time to open the file and to read them all
// must not grow faster than linearly.
TEST(Safetensors, ManyTensors) {
  const TemporaryFolder folder;
  std::string header = "{";
  for (int i = 0; header.size() < (4 << 20) - 100; ++i) {
    header += concat(i == 0 ? "" : ",", "\"", i, R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})");
  }
  test::write_text(folder.path / "a", file_of(header + "}", 0));
  const std::clock_t start = std::clock();
  const SafetensorsReader file(folder.path / "a");
  for (const TensorInfo& tensor : file.tensors()) file.read(tensor.name, tensor.dtype, tensor.shape, {});
  EXPECT_GT(file.tensors().size(), 70'000u);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5.0 * kSlowdown);
}

}  // namespace
}  // namespace wd
