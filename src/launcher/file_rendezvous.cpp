// file_rendezvous.cpp: nodes that share a folder find each other through files in it:
//
//   RUNID.node_I.json   by node I > 0: {nonce, host, restart}
//   RUNID.json          by node 0: {address, port, token, restart, nonces}; readable only by its owner
//
// The folder may contain files of an earlier run. Node I therefore accepts RUNID.json only if it contains the
// nonce that node I has just generated, and node 0 publishes again whenever a node's file has changed. Files
// are polled, because change notifications do not cross a network file system.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>

#include "src/base/atomic_file.h"
#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/json.h"
#include "src/distributed/address.h"
#include "src/launcher/rendezvous.h"
#include "src/worker/monotonic.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMilliseconds = 50;
constexpr const char* kLoopback = "127.0.0.1";

// Returns an object, or null if there is no complete one. Throws UsageError if the path is not a regular
// file, because then waiting for one is pointless.
nlohmann::json read_object(const fs::path& path) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 24;  // 65,536 nodes
  const std::optional<std::string> text = read_regular(path, kMaxBytes);
  if (!text && (errno == EINVAL || errno == EISDIR || errno == ELOOP))
    throw UsageError(concat("--rendezvous: ", path.string(), " is not a regular file: remove it"));
  nlohmann::json json = parse_json(text.value_or(""));
  return json.is_object() ? json : nlohmann::json();
}

// Returns the interface that the user chose for collectives. Empty if none or a pattern ("^docker0") was
// given.
std::string chosen_interface() {
  for (const char* const variable : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    const char* const value = std::getenv(variable);
    std::string_view name = value == nullptr ? "" : value;
    if (name.starts_with('=')) name.remove_prefix(1);
    name = name.substr(0, name.find(','));
    if (!name.empty() && !name.starts_with('^')) return std::string(name);
  }
  return "";
}

// Returns an IPv4 address at which other nodes reach this one: of the interface that GLOO_SOCKET_IFNAME or
// NCCL_SOCKET_IFNAME names, otherwise the first that is not a loopback address, otherwise 127.0.0.1. Throws
// UsageError if the named interface has none.
std::string own_address() {
  const std::string wanted = chosen_interface();
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return kLoopback;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const bool works = (entry->ifa_flags & IFF_RUNNING) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    if (wanted.empty() ? !works : wanted != entry->ifa_name) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text.data(),
                text.size());
    return text.data();
  }
  if (wanted.empty()) return kLoopback;
  throw UsageError(concat("GLOO_SOCKET_IFNAME or NCCL_SOCKET_IFNAME: the interface '", wanted,
                          "' is not here or has no IPv4 address"));
}

class FileRendezvous : public Rendezvous {
 public:
  // Throws UsageError if the folder cannot be created.
  FileRendezvous(const LaunchOptions& options, MeetingPlace place)
      : options_(options), place_(std::move(place)), run_id_(run_id(options)) {
    std::error_code error;
    fs::create_directories(place_.folder, error);
    if (error)
      throw UsageError(
          concat("--rendezvous ", place_.text, ": the folder cannot be made: ", error.message()));
  }
  // Removes the file that this node wrote.
  ~FileRendezvous() override {
    std::error_code gone_already;
    fs::remove(file_of(options_.node_index), gone_already);
  }

  std::optional<Meeting> meet(int restart, Signals& signals) override {
    restart_ = restart;
    return options_.node_index == 0 ? gather(signals) : join(signals);
  }

  void keep() override {
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

 private:
  fs::path file_of(int node) const {
    return place_.folder / (node == 0 ? run_id_ + ".json" : concat(run_id_, ".node_", node, ".json"));
  }

  void write(const fs::path& path, const std::string& text) const {
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
  bool wait_until(std::int64_t deadline, Signals& signals) const {
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

  // --- node 0 ---

  std::optional<Meeting> gather(Signals& signals) {
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

  // A node with a higher restart count has seen a failure that this node has not noticed yet. It waits for
  // the next attempt.
  std::map<int, std::string> read_nonces() const {
    std::map<int, std::string> nonces;
    for (int node = 1; node < options_.num_nodes; ++node) {
      const nlohmann::json json = read_object(file_of(node));
      const nlohmann::json nonce = json.is_null() ? nlohmann::json() : json.value("nonce", nlohmann::json());
      const nlohmann::json restart =
          json.is_null() ? nlohmann::json() : json.value("restart", nlohmann::json());
      if (nonce.is_string() && restart.is_number_integer() && restart.get<int>() <= restart_)
        nonces[node] = nonce.get<std::string>();
    }
    return nonces;
  }

  std::string missing_nodes() const {
    const std::map<int, std::string> here = read_nonces();
    std::string text;
    for (int node = 1; node < options_.num_nodes; ++node) {
      if (!here.contains(node)) text += concat(text.empty() ? "node " : ", ", node);
    }
    return text;
  }

  void publish() {
    nlohmann::json nonces = nlohmann::json::object();
    for (const auto& [node, nonce] : nonces_) nonces[std::to_string(node)] = nonce;
    const nlohmann::json json{
        {"address", address_}, {"port", port_}, {"token", token_}, {"restart", restart_}, {"nonces", nonces}};
    write(file_of(0), json.dump() + '\n');
  }

  // --- the other nodes ---

  std::optional<Meeting> join(Signals& signals) {
    const std::string nonce = random_token();
    const nlohmann::json json{{"nonce", nonce}, {"host", host_name()}, {"restart", restart_}};
    write(file_of(options_.node_index), json.dump() + '\n');
    const std::int64_t deadline = now_ns() + nanoseconds(options_.start_seconds);
    std::optional<Meeting> meeting;
    while (!(meeting = read_invitation(nonce))) {
      if (!wait_until(deadline, signals)) return {};
    }
    return meeting;
  }

  std::optional<Meeting> read_invitation(const std::string& nonce) const {
    const nlohmann::json json = read_object(file_of(0));
    const nlohmann::json::json_pointer mine(concat("/nonces/", options_.node_index));
    if (!json.contains(mine) || json[mine] != nonce) return {};
    try {
      return Meeting{json.at("address"), json.at("port"), json.at("token"), {}};
    } catch (const nlohmann::json::exception&) {
      throw UsageError(concat("--rendezvous: ", file_of(0).string(),
                              " was written by something else: remove it, or choose another --run_id"));
    }
  }

  const LaunchOptions& options_;
  MeetingPlace place_;
  std::string run_id_;
  int restart_ = 0;
  std::string address_, token_;
  int port_ = 0;
  std::map<int, std::string> nonces_;  // as published
};

}  // namespace

std::unique_ptr<Rendezvous> make_file_rendezvous(const LaunchOptions& options, MeetingPlace place) {
  return std::make_unique<FileRendezvous>(options, std::move(place));
}

}  // namespace wd::launcher
