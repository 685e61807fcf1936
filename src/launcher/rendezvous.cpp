// rendezvous.cpp: rendezvous on one machine, or at an address that all nodes know. For files see
// file_rendezvous.cpp.
#include "src/launcher/rendezvous.h"

#include <array>
#include <cstdlib>

#include "src/base/files.h"
#include "src/base/host.h"
#include "src/base/whole_number.h"
#include "src/distributed/address.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

constexpr const char* kExpected =
    ": expected tcp://HOST:PORT of node 0, or file:///FOLDER that all nodes see";
constexpr int kLastPort = 65535;

class ThisMachine : public Rendezvous {
 public:
  std::optional<Meeting> meet(int, Signals&) override {
    constexpr const char* kAddress = "127.0.0.1";
    Descriptor socket(listen_on(kAddress, 0));
    const int port = port_of(socket.get());
    return Meeting{kAddress, port, random_token(), std::move(socket)};
  }
};

class KnownAddress : public Rendezvous {
 public:
  KnownAddress(const LaunchOptions& options, MeetingPlace place)
      : options_(options), place_(std::move(place)) {}

  std::optional<Meeting> meet(int, Signals&) override {
    Meeting meeting{place_.host, place_.port, token(), {}};
    if (options_.node_index == 0) meeting.store = listen();
    return meeting;
  }

 private:
  Descriptor listen() const {
    try {
      return Descriptor(listen_on(place_.host, place_.port));
    } catch (const UsageError& error) {
      throw UsageError(concat("--rendezvous ", place_.text, ": node 0 listens there: ", error.what()));
    }
  }

  // Nodes share only the address, so the user who starts them must provide a secret.
  std::string token() const {
    if (options_.num_nodes == 1) return random_token();
    const char* const given = std::getenv("WD_TOKEN");
    return given == nullptr ? "" : given;
  }

  const LaunchOptions& options_;
  MeetingPlace place_;
};

MeetingPlace parse_tcp(const std::string& text, std::string_view rest) {
  const std::size_t colon = rest.rfind(':');
  MeetingPlace place{.kind = MeetingPlace::Kind::kTcp, .text = text};
  if (colon != std::string_view::npos) {
    place.host = rest.substr(0, colon);
    place.port = whole_number<int>(rest.substr(colon + 1)).value_or(0);
  }
  const bool in_brackets = place.host.starts_with('[') && place.host.ends_with(']');
  if (in_brackets) place.host = place.host.substr(1, place.host.size() - 2);
  const bool ambiguous = !in_brackets && place.host.find(':') != std::string::npos;  // IPv6 without brackets
  if (place.host.empty() || ambiguous || place.port < 1 || place.port > kLastPort)
    throw UsageError("--rendezvous " + text + kExpected);
  if (place.host == "0.0.0.0" || place.host == "::") {
    throw UsageError(concat("--rendezvous ", text, ": ", place.host,
                            " is not an address that other nodes can reach, and would open the port on every "
                            "network; give the address of node 0 at which the others reach it"));
  }
  return place;
}

}  // namespace

MeetingPlace parse_rendezvous(const std::string& text) {
  constexpr std::string_view kTcp = "tcp://", kFile = "file://";
  if (text.empty()) return {};
  if (text.starts_with(kTcp)) return parse_tcp(text, std::string_view(text).substr(kTcp.size()));
  MeetingPlace place{.kind = MeetingPlace::Kind::kFile, .text = text};
  if (text.starts_with(kFile)) place.folder = text.substr(kFile.size());
  if (!place.folder.is_absolute()) throw UsageError("--rendezvous " + text + kExpected);
  return place;
}

std::unique_ptr<Rendezvous> make_rendezvous(const LaunchOptions& options) {
  MeetingPlace place = parse_rendezvous(options.rendezvous);
  switch (place.kind) {
    case MeetingPlace::Kind::kTcp:
      return std::make_unique<KnownAddress>(options, std::move(place));
    case MeetingPlace::Kind::kFile:
      return make_file_rendezvous(options, std::move(place));
    case MeetingPlace::Kind::kThisMachine:
      break;
  }
  return std::make_unique<ThisMachine>();
}

std::string run_id(const LaunchOptions& options) {
  if (!options.run_id.empty()) return options.run_id;
  return options.num_nodes > 1 ? "default" : random_token();
}

}  // namespace wd::launcher
