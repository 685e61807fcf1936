// file_rendezvous.h: nodes that share a folder find each other through files in it:
//
//   RUNID.node_I.json   by node I > 0: {nonce, host, restart}
//   RUNID.json          by node 0: {address, port, token, restart, nonces}; readable only by its owner
//
// The folder may contain files of an earlier run. Node I therefore accepts RUNID.json only if it contains the
// nonce that node I has just generated, and node 0 publishes again whenever a node's file has changed.
#pragma once

#include "src/launcher/rendezvous.h"

namespace wd::launcher {

class FileRendezvous : public Rendezvous {
 public:
  // Throws UsageError if the folder cannot be created.
  FileRendezvous(const LaunchOptions& options, MeetingPlace place);
  ~FileRendezvous() override;  // removes the file that this node wrote

  std::optional<Meeting> meet(int restart, Signals& signals) override;
  void keep() override;

 private:
  std::optional<Meeting> gather(Signals& signals);
  std::optional<Meeting> join(Signals& signals);
  std::optional<Meeting> read_invitation(const std::string& nonce) const;
  std::filesystem::path file_of(int node) const;
  std::map<int, std::string> read_nonces() const;  // of the nodes that are present
  std::string missing_nodes() const;
  void publish();
  void write(const std::filesystem::path& path, const std::string& text) const;
  bool wait_until(std::int64_t deadline, Signals& signals) const;

  const LaunchOptions& options_;
  MeetingPlace place_;
  std::string run_id_;
  int restart_ = 0;
  std::string address_, token_;
  int port_ = 0;
  std::map<int, std::string> nonces_;  // as published
};

}  // namespace wd::launcher
