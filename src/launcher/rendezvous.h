// rendezvous.h: how the workers of all nodes meet: the address of rank 0 and the secret that admits a worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "src/base/descriptor.h"
#include "src/launcher/signals.h"
#include "wd/detail/supervise.h"

namespace wd::launcher {

struct Meeting {
  std::string address;
  int port = 0;
  std::string token;  // empty if there is no common secret
  Descriptor store;   // node 0 only: the listening socket for rank 0
};

// The parsed --rendezvous option.
struct MeetingPlace {
  enum class Kind { kThisMachine, kTcp, kFile } kind = Kind::kThisMachine;
  std::string text;  // as the user wrote it
  std::string host;  // kTcp
  int port = 0;
  std::filesystem::path folder;  // kFile
};

// Throws UsageError that names the expected form.
MeetingPlace parse_rendezvous(const std::string& text);

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // Called before each attempt. Returns none if a signal arrived first. Throws std::runtime_error that names
  // the nodes that did not arrive in time, and UsageError if the meeting place cannot be used.
  virtual std::optional<Meeting> meet(int restart, Signals& signals) = 0;
  // Called while workers start, to admit nodes that come again or late.
  virtual void keep() {}
};

std::unique_ptr<Rendezvous> make_rendezvous(const LaunchOptions& options);
// file_rendezvous.cpp: through files in place.folder. Throws UsageError if the folder cannot be created.
std::unique_ptr<Rendezvous> make_file_rendezvous(const LaunchOptions& options, MeetingPlace place);

// Returns the name under which nodes find each other, such as "default".
std::string run_id(const LaunchOptions& options);

}  // namespace wd::launcher
