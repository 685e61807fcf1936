// rendezvous.h: where the workers of all nodes meet: the address of rank 0 and the secret that lets a worker
// in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "src/launcher/descriptor.h"
#include "src/launcher/signals.h"
#include "wd/supervise.h"

namespace wd::launcher {

struct Meeting {
  std::string address;
  int port = 0;
  std::string token;  // empty: none was agreed on
  Descriptor store;   // node 0: the listening socket, for its rank 0
};

// --rendezvous, taken apart.
struct MeetingPlace {
  enum class Kind { kThisMachine, kTcp, kFile } kind = Kind::kThisMachine;
  std::string text;  // as it was written
  std::string host;  // kTcp
  int port = 0;
  std::filesystem::path folder;  // kFile
};

// Throws UsageError saying what is expected.
MeetingPlace parse_rendezvous(const std::string& text);

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Before each attempt. No value: a signal came first. Throws std::runtime_error naming the nodes that did
  // not come in time, UsageError where the place cannot be used.
  virtual std::optional<Meeting> meet(int restart, Signals& signals) = 0;
  // While workers start: a node that comes again, or late, is let in.
  virtual void keep() {}
};

std::unique_ptr<Rendezvous> make_rendezvous(const LaunchOptions& options);

// "default" and the like: the name under which nodes find each other.
std::string run_id(const LaunchOptions& options);

}  // namespace wd::launcher
