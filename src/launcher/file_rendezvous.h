// file_rendezvous.h: nodes that see one folder find each other through files in it:
//
//   RUNID.node_I.json   by node I > 0: {nonce, host, restart}
//   RUNID.json          by node 0: {address, port, token, restart, nonces}; only its user may read it
//
// What an earlier run left there may look like news. Node I therefore believes RUNID.json only if it quotes
// the nonce that node I has just drawn, and node 0 publishes again whenever a node's file has changed.
#pragma once

#include "src/launcher/rendezvous.h"

namespace wd::launcher {

class FileRendezvous : public Rendezvous {
 public:
  FileRendezvous(const LaunchOptions& options,
                 MeetingPlace place);  // throws UsageError where the folder cannot be made
  ~FileRendezvous() override;          // removes what this node wrote

  std::optional<Meeting> meet(int restart, Signals& signals) override;
  void keep() override;

 private:
  std::optional<Meeting> gather(Signals& signals);
  std::optional<Meeting> join(Signals& signals);
  std::optional<Meeting> read_invitation(const std::string& nonce) const;
  std::filesystem::path file_of(int node) const;
  std::map<int, std::string> read_nonces() const;  // of the nodes that are there
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
