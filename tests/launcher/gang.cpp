// gang.cpp: a program that launches itself, for tests of the launcher. Its workers count, wait for each
// other, and fail as requested.
//
//   gang --workers 4 --iterations 10 --ms 20 --run_dir DIR --fault rank=1,iter=3,kind=kill ...
//
// Collective operations go through rank 0, using the socket and the token that it gets from the launcher.
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/base/streams.h"
#include "src/worker/fault.h"
#include "wd/detail/supervise.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace {

namespace heartbeat = wd::heartbeat;
using heartbeat::Activity;

// "--name value" pairs. If a name is repeated and one value is needed, the last one counts.
class Arguments {
 public:
  Arguments(int count, char** words) {
    for (int k = 1; k + 1 < count; k += 2) values_.emplace(words[k], words[k + 1]);
  }
  std::string text(const std::string& name, const std::string& otherwise = "") const {
    const std::vector<std::string> values = all(name);
    return values.empty() ? otherwise : values.back();
  }
  double number(const std::string& name, double otherwise) const {
    const std::string value = text(name);
    return value.empty() ? otherwise : std::stod(value);
  }
  int integer(const std::string& name, int otherwise) const {
    return static_cast<int>(number(name, otherwise));
  }
  std::vector<std::string> all(const std::string& name) const {
    const auto [first, last] = values_.equal_range("--" + name);
    std::vector<std::string> result;
    for (auto entry = first; entry != last; ++entry) result.push_back(entry->second);
    return result;
  }
  // The value of "--name RANK:VALUE" for this rank; empty if there is none.
  std::string of_rank(const std::string& name, int rank) const {
    const std::string mine = std::to_string(rank) + ":";
    for (const std::string& value : all(name)) {
      if (value.starts_with(mine)) return value.substr(mine.size());
    }
    return "";
  }

 private:
  std::multimap<std::string, std::string> values_;
};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

struct PeerLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Rank 0 gathers a byte from each rank and sends the bitwise OR of all of them to every rank.
class Peers {
 public:
  explicit Peers(bool deaf)
      : deaf_(deaf), world_(std::stoi(variable("WORLD_SIZE"))), token_(variable("WD_TOKEN")) {
    const heartbeat::Collective inside;
    if (variable("RANK") == "0") {
      while (static_cast<int>(connections_.size()) < world_ - 1) accept_one();
    } else {
      connect();
    }
  }

  bool any(bool mine) {
    const heartbeat::Collective inside;
    unsigned char all = mine ? 1 : 0;
    if (variable("RANK") != "0") {
      send(connections_.front(), &all, 1);
      receive(connections_.front(), &all, 1);
      return all != 0;
    }
    for (const int connection : connections_) {
      unsigned char one = 0;
      receive(connection, &one, 1);
      all |= one;
    }
    for (const int connection : connections_) send(connection, &all, 1);
    return all != 0;
  }

 private:
  // Rejects connections that do not know the token.
  void accept_one() {
    const int connection = ::accept(std::stoi(variable("WD_STORE_FD")), nullptr, nullptr);
    if (connection < 0) return;
    std::string token(token_.size(), ' ');
    const bool known =
        ::recv(connection, token.data(), token.size(), MSG_WAITALL) == static_cast<ssize_t>(token.size()) &&
        token == token_;
    if (known) connections_.push_back(connection);
    if (!known) ::close(connection);
  }
  void connect() {
    addrinfo* address = nullptr;
    for (int attempt = 0; attempt < 500; ++attempt, sleep_ms(10)) {
      if (::getaddrinfo(variable("MASTER_ADDR").c_str(), variable("MASTER_PORT").c_str(), nullptr,
                        &address) != 0)
        continue;
      const int connection = ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const bool connected = ::connect(connection, address->ai_addr, address->ai_addrlen) == 0;
      ::freeaddrinfo(address);
      if (connected) {
        connections_.push_back(connection);
        return send(connection, token_.data(), token_.size());
      }
      ::close(connection);
    }
    throw PeerLost("rank 0 is not there");
  }
  void send(int connection, const void* bytes, std::size_t size) {
    if (::send(connection, bytes, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) lost();
  }
  void receive(int connection, void* bytes, std::size_t size) {
    ssize_t got = 0;
    do got = ::recv(connection, bytes, size, MSG_WAITALL);
    while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(size)) lost();
  }
  [[noreturn]] void lost() {
    while (deaf_) ::pause();
    throw PeerLost("connection closed by peer");
  }

  bool deaf_;  // does not notice that a peer is gone, like some collectives on GPUs
  int world_;
  std::string token_;
  std::vector<int> connections_;
};

volatile std::sig_atomic_t asked_to_stop = 0;

void talk(int bytes) {
  const std::string line(99, 'x');
  for (int written = 0; written < bytes; written += 100) std::cerr << line << '\n';
}

// Parses "ITERATION:PHASE:MS": in that iteration, enters the phase and makes no progress for MS milliseconds.
void be_silent(const std::string& order, int iteration) {
  if (order.empty() || std::stoi(order) != iteration) return;
  const std::map<std::string, Activity> phases = {{"checkpoint", Activity::kCheckpoint},
                                                  {"rollout", Activity::kRollout}};
  const std::size_t colon = order.find(':'), second = order.find(':', colon + 1);
  heartbeat::enter(phases.at(order.substr(colon + 1, second - colon - 1)));
  sleep_ms(std::stoi(order.substr(second + 1)));
}

void begin(const Arguments& arguments, int rank) {
  heartbeat::device("cpu");
  sleep_ms(arguments.integer("start_ms", 0));
  talk(arguments.integer("talk_before", 0));
  const std::string folder = arguments.text("run_dir");
  if (folder.empty()) return;
  std::filesystem::create_directories(folder);
  heartbeat::run_folder(folder);
  std::cerr << "rank " << rank << " begins\n" << arguments.text("say");
  std::cout << "stdout of rank " << rank << std::endl;
}

// Continues after the last recorded iteration, as from a checkpoint.
int first_iteration() {
  int done = 0;
  std::ifstream(variable("WD_RESTART_DIR") + "/iteration") >> done;
  return done + 1;
}

std::vector<wd::Fault> faults_of(const Arguments& arguments, int rank) {
  const int attempt = std::stoi(variable("TORCHELASTIC_RESTART_COUNT"));
  std::vector<wd::Fault> faults;
  for (const std::string& text : arguments.all("fault")) {
    const wd::Fault fault = wd::parse_fault(text);
    if (fault.rank == rank && attempt < fault.times) faults.push_back(fault);
  }
  return faults;
}

int work(const Arguments& arguments) {
  const int rank = std::stoi(variable("RANK"));
  begin(arguments, rank);
  Peers peers(arguments.text("deaf") == "yes");
  const std::vector<wd::Fault> faults = faults_of(arguments, rank);
  const std::string usage = arguments.of_rank("usage", rank), leave = arguments.of_rank("leave", rank);
  const int first = first_iteration();
  if (first > 1) std::cerr << "rank " << rank << " goes on with iteration " << first << '\n';
  for (int iteration = first; iteration <= arguments.integer("iterations", 10); ++iteration) {
    heartbeat::iteration(iteration);
    heartbeat::enter(Activity::kRollout);
    be_silent(arguments.of_rank("silent", rank), iteration);
    for (const wd::Fault& fault : faults) fault.inject(iteration);
    if (usage == std::to_string(iteration)) throw wd::UsageError("this cannot be");
    if (leave == std::to_string(iteration)) return 0;
    sleep_ms(arguments.integer("ms", 5));
    talk(arguments.integer("talk", 0));
    heartbeat::enter(Activity::kUpdate);
    const bool stop = peers.any(asked_to_stop != 0);
    if (rank == 0 && !arguments.text("run_dir").empty())
      std::ofstream(arguments.text("run_dir") + "/iteration") << iteration << '\n';
    if (stop) return 128 + (asked_to_stop != 0 ? asked_to_stop : SIGTERM);
  }
  return 0;
}

int worker(const Arguments& arguments) {
  heartbeat::watch_crashes();
  if (arguments.text("careless") != "yes") {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      std::signal(signal, [](int number) { asked_to_stop = number; });
  }
  if (arguments.text("grandchild") == "yes" && ::fork() == 0) {
    sleep_ms(10000);
    ::_exit(0);
  }
  int code = 1;
  try {
    code = work(arguments);
    heartbeat::finished(code);
  } catch (const PeerLost& error) {
    heartbeat::failed(error.what(), true);
  } catch (const wd::UsageError& error) {
    heartbeat::failed(error.what(), false);
    code = 2;
  } catch (const std::exception& error) {
    heartbeat::failed(error.what(), false);
  }
  const std::string linger = arguments.of_rank("linger", std::stoi(variable("RANK")));
  if (!linger.empty()) sleep_ms(std::stoi(linger));
  return code;
}

int launch(const Arguments& arguments, int count, char** words) {
  wd::LaunchOptions options;
  options.gpus = arguments.text("gpus") == "yes";
  options.num_workers = arguments.integer("workers", 2);
  options.num_nodes = arguments.integer("nodes", 1);
  options.node_index = arguments.integer("node", 0);
  options.rendezvous = arguments.text("rendezvous");
  options.run_id = arguments.text("run_id");
  options.max_restarts = arguments.integer("restarts", 0);
  options.grace_seconds = arguments.number("grace", options.grace_seconds);
  options.start_seconds = arguments.number("start", options.start_seconds);
  options.step_seconds = arguments.number("step", options.step_seconds);
  options.checkpoint_seconds = arguments.number("checkpoint", options.checkpoint_seconds);
  if (arguments.text("list_gpus") == "yes") {
    for (const std::string& name : wd::visible_gpus()) std::cout << name << '\n';
    return 0;
  }
  std::vector<std::string> command(words, words + count);
  command.front() = arguments.text("program", std::filesystem::read_symlink("/proc/self/exe"));
  return wd::supervise(options, command);
}

}  // namespace

int main(int argc, char** argv) {
  wd::survive_closed_streams();
  const Arguments arguments(argc, argv);
  try {
    return variable("RANK").empty() ? launch(arguments, argc, argv) : worker(arguments);
  } catch (const wd::UsageError& error) {
    wd::logging::error(error.what());
    return 2;
  } catch (const std::exception& error) {
    wd::logging::error(error.what());
    return 1;
  }
}
