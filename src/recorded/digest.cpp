// digest.cpp: hashes evenly spaced pieces of each part of a recording.
#include "src/recorded/digest.h"

#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "src/base/files.h"
#include "src/base/hex.h"
#include "src/recorded/fields.h"

namespace wd {
namespace {

constexpr std::uint64_t kHead = 65'536;  // bytes, with the header
constexpr std::uint64_t kPiece = 4096, kPieces = 256;

class Hash {
 public:
  Hash() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const void* bytes, std::size_t size) { XXH3_64bits_update(state_.get(), bytes, size); }
  void add(const File& file, std::uint64_t at, std::uint64_t size) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    file.read_at(at, bytes);
    add(bytes.data(), bytes.size());
  }
  std::string text() const { return hex(XXH3_64bits_digest(state_.get())); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

void add_part(Hash& hash, const std::filesystem::path& path) {
  const File file(path, O_RDONLY | O_NONBLOCK);
  const std::uint64_t size = file.size();
  hash.add(&size, sizeof(size));
  if (size <= kHead + kPieces * kPiece) return hash.add(file, 0, size);
  hash.add(file, 0, kHead);
  const std::uint64_t last = size - kPiece;
  for (std::uint64_t k = 0; k < kPieces; ++k)
    hash.add(file, kHead + (last - kHead) / (kPieces - 1) * k, kPiece);
  hash.add(file, last, kPiece);
}

}  // namespace

std::map<std::string, std::string> recording_digests(const Config& config) {
  std::map<std::string, std::string> digests;
  if (config.trainer.offline.empty()) return digests;
  for (const PolicySettings& policy : config.policies) {
    if (!policy.to_train) continue;
    const std::filesystem::path folder = std::filesystem::path(config.trainer.offline) / policy.name;
    Hash hash;
    std::error_code error;
    for (std::int64_t k = 0; std::filesystem::is_regular_file(recorded_part(folder, k), error); ++k)
      add_part(hash, recorded_part(folder, k));
    digests[policy.name] = hash.text();
  }
  return digests;
}

}  // namespace wd
