// roll_call.cpp: polls keys of c10d's store, because a wait inside c10d does not say which rank it waits for.
#include "src/distributed/roll_call.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "src/base/host.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/distributed/address.h"
#include "src/distributed/seal.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause(10);
// Rank 0 may have begun to wait later; this is its time to report what is wrong.
constexpr double kMoreSeconds = 10;
constexpr std::string_view kGo = "go", kNo = "no";
constexpr const char* kRemedy =
    "; all machines need the same --rendezvous, --num_nodes, --num_workers, --run_id and WD_TOKEN, and a "
    "--node_index of their own";

struct Caller {
  int rank = -1, world_size = 0, local_size = 0, process = 0;
  std::string host, nonce;

  std::string claim() const {
    return concat(rank, ' ', world_size, ' ', local_size, ' ', process, ' ', host, ' ', nonce);
  }
  std::string where() const { return concat("process ", process, " on ", without_controls(host)); }
};

class RollCall {
 public:
  RollCall(Store store, const Membership& self, double start_s)
      : store_(std::move(store)), self_(self), start_s_(start_s), begin_(Clock::now()) {}

  std::string lead() {
    if (self_.token.empty() && self_.world_size > self_.local_world_size) {
      logging::warn(concat("this job has no WD_TOKEN: whoever reaches ", place(),
                           " can join it; set WD_TOKEN to the same secret on all machines"));
    }
    nonce_ = random_token();
    set("hello", nonce_ + ' ' + self_.run_id);
    std::map<int, Caller> here;
    try {
      for (std::int64_t heard = 0; static_cast<int>(here.size()) < self_.world_size - 1;) {
        const std::int64_t count = store_->add(key("callers"), 0);
        while (heard < count && has(concat("caller/", heard + 1)))
          admit(get(concat("caller/", ++heard)), here);
        if (static_cast<int>(here.size()) < self_.world_size - 1 && !pause(start_s_)) tell_missing(here);
      }
    } catch (const std::exception& error) {
      set("verdict", sealed(concat(kNo, ' ', error.what())));
      // The others read it before the store ends with this process.
      std::this_thread::sleep_for(10 * kPause);
      throw;
    }
    std::string go(kGo);
    for (const auto& [rank, caller] : here) go += ' ' + caller.nonce;
    set("verdict", sealed(go));
    return nonce_;
  }

  std::string follow() {
    if (!wait_for("hello", start_s_))
      throw std::runtime_error(
          concat("rank 0 did not come to ", place(), " within ", start_s_, " s", kRemedy));
    const std::string hello = get("hello");
    nonce_ = hello.substr(0, hello.find(' '));
    if (const std::string run = hello.substr(std::min(nonce_.size() + 1, hello.size()));
        run != self_.run_id) {
      throw UsageError(concat(place(), " belongs to run '", without_controls(run), "', this worker (rank ",
                              self_.rank, ") to run '", self_.run_id,
                              "': give each run a port, or a rendezvous, of its own"));
    }
    const Caller me{self_.rank, self_.world_size, self_.local_world_size,
                    ::getpid(), host_name(),      random_token()};
    set(concat("caller/", store_->add(key("callers"), 1)), sealed(me.claim()));
    const std::string verdict = wait_for_verdict(me.nonce);
    if (verdict.starts_with(kNo))
      throw PeerError("rank 0 does not begin: " +
                      without_controls(verdict.substr(std::min(kNo.size() + 1, verdict.size()))));
    return nonce_;
  }

 private:
  std::string place() const { return concat(self_.master_addr, ":", self_.master_port); }
  std::string key(const std::string& name) const { return concat("wd/meet/", self_.restart, "/", name); }
  bool has(const std::string& name) const { return store_->check({key(name)}); }
  std::string get(const std::string& name) const {
    const std::vector<std::uint8_t> bytes = store_->get(key(name));
    return {bytes.begin(), bytes.end()};
  }
  void set(const std::string& name, const std::string& text) const {
    store_->set(key(name), std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  // "SEAL TEXT".
  std::string sealed(std::string_view text) const {
    return concat(seal(self_.token, concat(nonce_, ' ', text)), ' ', text);
  }
  // The text, or nothing if the seal is not that of this job.
  std::optional<std::string> unsealed(const std::string& text) const {
    std::string content = text.substr(std::min(text.find(' '), text.size() - 1) + 1);
    if (text.empty() || text != sealed(content)) return {};
    return content;
  }

  // Waits briefly. Returns false if `limit_s` seconds have already passed since the beginning.
  bool pause(double limit_s) const {
    if (std::chrono::duration<double>(Clock::now() - begin_).count() >= limit_s) return false;
    heartbeat::beat();
    std::this_thread::sleep_for(kPause);
    return true;
  }
  bool wait_for(const std::string& name, double limit_s) const {
    while (!has(name)) {
      if (!pause(limit_s)) return false;
    }
    return true;
  }
  // A verdict to begin names this worker's number.
  std::string wait_for_verdict(const std::string& number) const {
    const double limit_s = start_s_ + kMoreSeconds;
    bool told = false;
    // Rank 0 may end when it has given its own verdict. c10d would log a backtrace about a store that is
    // gone.
    while ((!told || is_listened_on(self_.master_addr, self_.master_port)) && wait_for("verdict", limit_s)) {
      const std::optional<std::string> verdict = unsealed(get("verdict"));
      if (verdict && (verdict->starts_with(kNo) || verdict->find(number) != std::string::npos))
        return *verdict;
      if (!told) {
        logging::warn(concat("the verdict of rank 0 at ", place(),
                             " is not sealed with this worker's WD_TOKEN: ignored", kRemedy));
      }
      told = true;
      // Seldom from now on: rank 0 may end between this look at its port and the next read of its store.
      constexpr int kPauses = 100;
      for (int k = 0; k < kPauses && pause(limit_s); ++k) continue;
      if (!pause(limit_s)) break;
    }
    if (told)
      throw UsageError(concat("rank 0 at ", place(), " does not know this worker's WD_TOKEN", kRemedy));
    throw PeerError(concat("rank 0 at ", place(), " does not say that all have come"));
  }

  void admit(const std::string& text, std::map<int, Caller>& here) {
    const std::optional<std::string> claim = unsealed(text);
    Caller caller;
    std::istringstream words(claim.value_or(text.substr(std::min(text.find(' '), text.size()))));
    words >> caller.rank >> caller.world_size >> caller.local_size >> caller.process >> caller.host >>
        caller.nonce;
    if (!claim) {
      ignored_ = concat("somebody who calls itself rank ", caller.rank, " (", caller.where(),
                        ") does not know the WD_TOKEN of rank 0");
      logging::warn(concat(ignored_, ": ignored", kRemedy));
      return;
    }
    if (caller.world_size != self_.world_size) {
      throw UsageError(concat("rank ", caller.rank, " (", caller.where(), ") was started as one of ",
                              caller.world_size, " workers, ", caller.local_size,
                              " on its machine, and rank 0 as one of ", self_.world_size, ", ",
                              self_.local_world_size, " on its own", kRemedy));
    }
    const auto [first, is_new] = here.emplace(caller.rank, caller);
    if (!is_new && caller.claim() == first->second.claim()) return;  // a copy of a text that anybody can read
    if (!is_new || caller.rank == 0) {
      throw UsageError(concat("two workers call themselves rank ", caller.rank, ": ", caller.where(),
                              ", and ", caller.rank == 0 ? "this one" : first->second.where(), kRemedy));
    }
  }

  [[noreturn]] void tell_missing(const std::map<int, Caller>& here) const {
    std::string ranks, nodes;
    int node = -1;
    for (int rank = 1; rank < self_.world_size; ++rank) {
      if (here.contains(rank)) continue;
      ranks += concat(ranks.empty() ? "" : ", ", rank);
      if (rank / self_.local_world_size == node) continue;
      node = rank / self_.local_world_size;
      nodes += concat(nodes.empty() ? "" : ", ", node);
    }
    const bool several = self_.world_size > self_.local_world_size;
    const std::string missing =
        concat(several ? concat("node ", nodes, " (rank ", ranks, ")") : "rank " + ranks,
               " did not come within ", start_s_, " s");
    if (!ignored_.empty()) throw UsageError(concat(missing, ", and ", ignored_, kRemedy));
    throw std::runtime_error(concat(missing, several ? kRemedy : ""));
  }

  Store store_;
  const Membership& self_;
  double start_s_;
  Clock::time_point begin_;
  std::string nonce_;
  std::string ignored_;  // what was said of the last claim with a wrong seal
};

}  // namespace

std::string call_roll(const Store& store, const Membership& self, double start_s) {
  RollCall roll_call(store, self, start_s);
  return self.rank == 0 ? roll_call.lead() : roll_call.follow();
}

void wait_for_rank_0(const Membership& self, double start_s) {
  const Clock::time_point begin = Clock::now();
  std::string why = "nobody listens there";
  do {
    heartbeat::beat();
    try {
      if (is_listened_on(self.master_addr, self.master_port)) return;
    } catch (const UsageError& unknown_yet) {  // the name may become known when the machine starts
      why = unknown_yet.what();
    }
    std::this_thread::sleep_for(5 * kPause);
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < start_s);
  throw std::runtime_error(concat("rank ", self.rank, ": rank 0 did not come to ", self.master_addr, ":",
                                  self.master_port, " within ", start_s, " s (", why, ")", kRemedy));
}

}  // namespace wd
