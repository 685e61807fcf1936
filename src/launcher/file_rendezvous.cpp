// file_rendezvous.cpp: polls files, because change notifications do not cross a network file system.
#include "src/launcher/file_rendezvous.h"

#include <sys/stat.h>

#include <cerrno>

#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/json.h"
#include "src/distributed/address.h"
#include "src/launcher/own_address.h"
#include "src/worker/monotonic.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kPollMilliseconds = 50;

// Returns an object, or null if there is no complete one. Throws UsageError if the path is not a regular
// file, because then waiting for one is pointless.
Json read_object(const fs::path& path) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 24;  // 65,536 nodes
  const std::optional<std::string> text = read_regular(path, kMaxBytes);
  if (!text && (errno == EINVAL || errno == EISDIR || errno == ELOOP))
    throw UsageError(concat("--rendezvous: ", path.string(), " is not a regular file: remove it"));
  Json json = parse_json(text.value_or(""));
  return json.is_object() ? json : Json();
}

}  // namespace

FileRendezvous::FileRendezvous(const LaunchOptions& options, MeetingPlace place)
    : options_(options), place_(std::move(place)), run_id_(run_id(options)) {
  std::error_code error;
  fs::create_directories(place_.folder, error);
  if (error)
    throw UsageError(concat("--rendezvous ", place_.text, ": the folder cannot be made: ", error.message()));
}

FileRendezvous::~FileRendezvous() {
  std::error_code gone_already;
  fs::remove(file_of(options_.node_index), gone_already);
}

fs::path FileRendezvous::file_of(int node) const {
  return place_.folder / (node == 0 ? run_id_ + ".json" : concat(run_id_, ".node_", node, ".json"));
}

void FileRendezvous::write(const fs::path& path, const std::string& text) const {
  const mode_t before = ::umask(S_IRWXG | S_IRWXO);
  try {
    write_file_atomically(path, text, Durability::kReplace);
  } catch (const std::runtime_error& error) {
    ::umask(before);
    throw UsageError(concat("--rendezvous ", place_.text, ": ", error.what()));
  }
  ::umask(before);
}

// Pauses briefly and returns true if the caller may keep waiting, or false after a signal.
bool FileRendezvous::wait_until(std::int64_t deadline, Signals& signals) const {
  if (now_ns() >= deadline) {
    const std::string who =
        options_.node_index == 0
            ? missing_nodes() + " did not come"
            : file_of(0).string() + " names no meeting for this node: node 0 did not come";
    throw std::runtime_error(concat("--rendezvous ", place_.text, ": ", who, " within ",
                                    options_.start_seconds,
                                    " s; all nodes need the same folder and --run_id"));
  }
  signals.wait(kPollMilliseconds);
  return signals.take().empty();
}

std::optional<Meeting> FileRendezvous::meet(int restart, Signals& signals) {
  restart_ = restart;
  return options_.node_index == 0 ? gather(signals) : join(signals);
}

// --- node 0 ------------------------------------------------------------------------------------------------

std::optional<Meeting> FileRendezvous::gather(Signals& signals) {
  std::error_code gone_already;
  fs::remove(file_of(0), gone_already);
  address_ = own_address();
  Descriptor socket(listen_on(address_, 0));
  port_ = port_of(socket.get());
  token_ = random_token();
  const std::int64_t deadline = now_ns() + nanoseconds(options_.start_seconds);
  while (nonces_ = read_nonces(), static_cast<int>(nonces_.size()) < options_.num_nodes - 1) {
    if (!wait_until(deadline, signals)) return {};
  }
  publish();
  return Meeting{address_, port_, token_, std::move(socket)};
}

void FileRendezvous::keep() {
  if (options_.node_index != 0) return;
  std::map<int, std::string> now = read_nonces();
  if (now == nonces_) return;
  now.swap(nonces_);
  try {
    publish();
  } catch (const UsageError&) {
    nonces_ = std::move(now);  // perhaps the disk is full: the next call tries again
  }
}

// A node with a higher restart count has seen a failure that this node has not noticed yet. It waits for the
// next attempt.
std::map<int, std::string> FileRendezvous::read_nonces() const {
  std::map<int, std::string> nonces;
  for (int node = 1; node < options_.num_nodes; ++node) {
    const Json json = read_object(file_of(node));
    const Json nonce = json.is_null() ? Json() : json.value("nonce", Json());
    const Json restart = json.is_null() ? Json() : json.value("restart", Json());
    if (nonce.is_string() && restart.is_number_integer() && restart.get<int>() <= restart_)
      nonces[node] = nonce.get<std::string>();
  }
  return nonces;
}

std::string FileRendezvous::missing_nodes() const {
  const std::map<int, std::string> here = read_nonces();
  std::string text;
  for (int node = 1; node < options_.num_nodes; ++node) {
    if (!here.contains(node)) text += concat(text.empty() ? "node " : ", ", node);
  }
  return text;
}

void FileRendezvous::publish() {
  Json nonces = Json::object();
  for (const auto& [node, nonce] : nonces_) nonces[std::to_string(node)] = nonce;
  const Json json{
      {"address", address_}, {"port", port_}, {"token", token_}, {"restart", restart_}, {"nonces", nonces}};
  write(file_of(0), json.dump() + '\n');
}

// --- the other nodes ---------------------------------------------------------------------------------------

std::optional<Meeting> FileRendezvous::join(Signals& signals) {
  const std::string nonce = random_token();
  const Json json{{"nonce", nonce}, {"host", host_name()}, {"restart", restart_}};
  write(file_of(options_.node_index), json.dump() + '\n');
  const std::int64_t deadline = now_ns() + nanoseconds(options_.start_seconds);
  std::optional<Meeting> meeting;
  while (!(meeting = read_invitation(nonce))) {
    if (!wait_until(deadline, signals)) return {};
  }
  return meeting;
}

std::optional<Meeting> FileRendezvous::read_invitation(const std::string& nonce) const {
  const Json json = read_object(file_of(0));
  const Json::json_pointer mine(concat("/nonces/", options_.node_index));
  if (!json.contains(mine) || json[mine] != nonce) return {};
  try {
    return Meeting{json.at("address"), json.at("port"), json.at("token"), {}};
  } catch (const Json::exception&) {
    throw UsageError(concat("--rendezvous: ", file_of(0).string(),
                            " was written by something else: remove it, or choose another --run_id"));
  }
}

}  // namespace wd::launcher
