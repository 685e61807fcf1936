// targets.h: the parsers of untrusted bytes, each fed with arbitrary bytes. They may reject input. A finding
// is anything else that escapes: an exception that they do not document, a crash, or a Broken promise about
// accepted input.
#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/utf8.h"
#include "src/checkpoint/manifest.h"
#include "src/checkpoint/safetensors_header.h"
#include "tests/config/chase.h"
#include "wd/safetensors.h"

namespace wd::test {

// Derives from none of the exceptions that the parsers throw.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void promise(bool kept, const std::string& what) {
  if (!kept) throw Broken(what);
}

// An in-memory file that can be opened by its path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    promise(written == static_cast<ssize_t>(bytes.size()), "memory takes the bytes");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// --- configuration ---

// Loads the text and returns the printed configuration, or nullopt if the text is rejected; rejections must
// be printable on a terminal.
inline std::optional<std::string> load_and_print(std::string_view text) {
  const MemoryFile file(text);
  Chase chase;
  try {
    const Config config = load_config({.file = file.path()}, lookup_of(chase));
    return print_config(config, access_to(chase).describe, false);
  } catch (const ConfigError& error) {
    promise(!error.problems().empty(), "a refusal says why");
    for (const std::string& problem : error.problems()) {
      promise(!config::first_bad_byte(problem) && problem.find('\n') == problem.npos,
              "a refusal is a line of text: " + problem);
    }
    return {};
  }
}

inline void feed_config(std::string_view bytes) {
  const std::optional<std::string> once = load_and_print(bytes);
  if (once) promise(load_and_print(*once) == once, "what is printed loads to the same values:\n" + *once);
}

// --- checkpoint manifest ---

inline void decode_manifest(std::string_view text) {
  std::string once;
  try {
    once = encode(checkpoint::decode(text));
  } catch (const std::runtime_error&) {
    return;
  }
  promise(encode(checkpoint::decode(once)) == once, "what is written reads to the same manifest:\n" + once);
}

// A manifest whose checksum matches the body, because random input would never pass the checksum.
inline std::string sealed(std::string_view body) {
  std::array<char, 32> checksum;
  const unsigned long long hash = XXH3_64bits(body.data(), body.size());
  std::snprintf(checksum.data(), checksum.size(), "%016llx", hash);
  return "{\"checkpoint\":" + std::string(body) + ",\"xxh3\":\"" + checksum.data() + "\"}\n";
}

inline void feed_manifest(std::string_view bytes) {
  decode_manifest(bytes);
  decode_manifest(sealed(bytes));
}

// --- safetensors ---

// Reads every tensor: after a file opens, all of its tensors must be readable.
inline void read_safetensors(std::string_view bytes) {
  const MemoryFile file(bytes);
  std::optional<SafetensorsReader> reader;
  try {
    reader.emplace(file.path());
  } catch (const std::runtime_error&) {
    return;
  }
  SafetensorsHeader header{reader->tensors(), reader->metadata()};
  std::uint64_t data_bytes = 0;
  for (const TensorInfo& tensor : header.tensors) {
    std::vector<std::byte> into(tensor.bytes);
    reader->read(tensor.name, tensor.dtype, tensor.shape, into);
    data_bytes += tensor.bytes;
  }
  const std::string written = encode_header(header);
  promise(encode_header(decode_header(written, data_bytes)) == written,
          "what is written reads to the same header:\n" + written);
}

// Reads the bytes as a file, and as a header: the first two bytes give the size of the data, and the rest is
// a header with the correct length.
inline void feed_safetensors(std::string_view bytes) {
  read_safetensors(bytes);
  if (bytes.size() < 2) return;
  const std::size_t data_bytes = static_cast<unsigned char>(bytes[0]) | static_cast<unsigned char>(bytes[1])
                                                                            << 8;
  const std::uint64_t length = bytes.size() - 2;
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  read_safetensors(file.append(bytes.substr(2)).append(data_bytes, '\0'));
}

}  // namespace wd::test
