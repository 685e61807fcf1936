// same_config.cpp: compares hashes, and the texts if the hashes differ.
#include "src/distributed/same_config.h"

#include <sstream>
#include <vector>

#include "wd/config.h"

namespace wd {

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Effective configurations of one environment have the same key in each line.
std::string difference(const std::string& first, const std::string& other) {
  const std::vector<std::string> a = lines_of(first), b = lines_of(other);
  std::string text;
  for (std::size_t k = 0; k < std::max(a.size(), b.size()); ++k) {
    const std::string left = k < a.size() ? a[k] : "", right = k < b.size() ? b[k] : "";
    if (left != right) text += concat("\n  rank 0: ", left, "\n  here:   ", right);
  }
  return text;
}

}  // namespace

void check_same_config(const ProcessGroup& group, const std::string& config) {
  if (group.size() == 1) return;
  const std::vector<std::string> hashes = group.all_gather(std::to_string(config_hash(config)));
  std::string others;
  for (std::size_t r = 1; r < hashes.size(); ++r)
    if (hashes[r] != hashes[0]) others += concat(others.empty() ? "" : ", ", r);
  if (others.empty()) return;
  const std::string first = group.broadcast(config);
  if (first == config)
    throw PeerError(concat("rank ", others, " was started with other settings than this one"));
  throw UsageError(concat("rank ", group.rank(), " was started with other settings than rank 0:",
                          difference(first, config), "\ngive all workers the same options and files"));
}

}  // namespace wd
