// python_process.cpp: requests go through a socket, steps through shared memory; either is announced by a
// bell.
#include "src/outside/python_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "src/base/binary_path.h"
#include "src/base/files.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "wd/error.h"

namespace wd::outside {

// At the start of the memory; python/wdtrain/worker.py has the same offsets.
struct PythonProcess::Control {
  alignas(64) Word posted;  // what is to be done: it rises by 1
  std::int32_t room;        // whose replicas to step; one of the following
  std::int32_t failed;      // 1: the answer is an exception
  alignas(64) Word done;    // the last value of `posted` that was dealt with
};

namespace {

constexpr int kRequest = -1, kEnd = -2;  // rooms
constexpr std::size_t kControlBytes = 4096;
constexpr int kGlanceMilliseconds = 50;  // between looks at whether the process is alive
constexpr double kCloseSeconds = 10.0, kEndSeconds = 5.0;
constexpr std::uint32_t kMaxAnswer = 1u << 30;

// Loads worker.py by its path, so that the modules beside it do not hide those of the user, and without the
// working folder, so that no module there hides those of worker.py.
constexpr const char* kLoader =
    "import sys; sys.path[:] = [p for p in sys.path if p]\n"
    "import importlib.util as u\n"
    "s = u.spec_from_file_location('wdtrain_worker', sys.argv[1])\n"
    "m = u.module_from_spec(s); sys.modules[s.name] = m; s.loader.exec_module(m); m.main(sys.argv[2:])";

std::filesystem::path library_folder() {
  return binary_path(reinterpret_cast<const void*>(&library_folder)).parent_path();
}

std::filesystem::path worker_file() {
  std::vector<std::filesystem::path> roots = {library_folder()};  // in the build
  for (const std::filesystem::path& prefix : library_prefixes()) roots.push_back(prefix / "share" / "wd");
  for (const std::filesystem::path& root : roots) {
    const std::filesystem::path file = root / "python" / "wdtrain" / "worker.py";
    if (std::filesystem::exists(file)) return file;
  }
  throw UsageError(concat("python/wdtrain/worker.py is neither beside ", roots.front().string(),
                          " nor in share/wd: build or install the project anew"));
}

// One thread for each process, unless the user says more: there are as many processes as processors.
std::vector<std::pair<std::string, std::string>> variables_of(const ProcessOptions& options) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (!options.modules.empty()) variables.emplace_back("PYTHONPATH", options.modules);
  for (const char* const name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    if (std::getenv(name) == nullptr) variables.emplace_back(name, "1");
  return variables;
}

std::string ending(int status) {
  if (status < 0) return "has ended, nobody knows how: SIGCHLD is ignored";
  if (WIFEXITED(status)) return concat("ended with exit code ", WEXITSTATUS(status));
  const char* const name = ::sigabbrev_np(WTERMSIG(status));
  return concat("was killed by signal ", WTERMSIG(status), name == nullptr ? "" : concat(" (SIG", name, ")"));
}

void send_frame(int socket, const std::string& text, int descriptor) {
  auto length = static_cast<std::uint32_t>(text.size());
  std::array<iovec, 2> parts{{{&length, sizeof length}, {const_cast<char*>(text.data()), text.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (descriptor >= 0) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  // A request is smaller than the buffer of a socket. If the process has ended, waiting for it tells how.
  static_cast<void>(::sendmsg(socket, &message, MSG_NOSIGNAL));
}

}  // namespace

PythonProcess::PythonProcess(int number, ProcessOptions options)
    : number_(number), options_(std::move(options)), memory_(kControlBytes) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw_file_error("socket", "open it");
  socket_ = Descriptor(ends[0]);
  const Descriptor other(ends[1]);
  const std::vector<std::string> command = {options_.python,
                                            "-c",
                                            kLoader,
                                            worker_file().string(),
                                            (library_folder() / "libwd_bell.so").string(),
                                            std::to_string(memory_.descriptor()),
                                            std::to_string(ends[1]),
                                            std::to_string(options_.spin_microseconds)};
  // Signals to end are this process's to deal with, also where a service manager sends them to all processes
  // of a job: they wait until worker.py handles them. The others would stop a process that uses the terminal.
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTTIN, SIGTTOU}) sigaddset(&mask, signal);
  try {
    child_ = start_child({.command = command,
                          .variables = variables_of(options_),
                          .inherited = {memory_.descriptor(), ends[1]},
                          .keeps_stdout = true,
                          .keeps_stderr = true,
                          .apart = true,
                          .signal_mask = mask});
  } catch (const std::runtime_error& error) {
    throw UsageError(concat("environment ", options_.environment, ": ", error.what(),
                            ": name another Python with env.python or WDTRAIN_PYTHON"));
  }
}

PythonProcess::~PythonProcess() {
  if (ended_) return;
  post(kEnd);
  ends_within(kEndSeconds);
  kill();
}

// A process that ends closes its connection before it can be waited for.
bool PythonProcess::ends_within(double seconds) {
  const auto limit = Clock::now() + std::chrono::duration<double>(seconds);
  while (!has_ended() && Clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return ended_;
}

// Its group ends with it, before it is waited for: until then, its number is the group's.
bool PythonProcess::has_ended() {
  if (ended_) return true;
  siginfo_t info{};
  const int found = ::waitid(P_PID, child_.pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
  if (found == 0 && info.si_pid == 0) return false;
  if (found == 0 && info.si_code == CLD_STOPPED) {
    ::kill(-child_.pid, SIGCONT);
    if (!std::exchange(continued_, true))
      logging::warn(concat(name(),
                           "was stopped (SIGSTOP), and goes on, because this process waits for it: to "
                           "pause a training, stop wdtrain"));
    return false;
  }
  ::kill(-child_.pid, SIGKILL);
  static_cast<void>(
      ::waitpid(child_.pid, &status_, 0));  // with SIGCHLD ignored, there is nothing to wait for
  return ended_ = true;
}

void PythonProcess::kill() {
  if (ended_) return;
  ::kill(-child_.pid, SIGKILL);
  siginfo_t info{};
  while (::waitid(P_PID, child_.pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) continue;
  has_ended();
}

std::string PythonProcess::name() const {
  return concat("environment ", options_.environment, ": process ", number_, " (pid ", child_.pid, ") ");
}

void PythonProcess::fail(const std::string& what) {
  kill();
  throw ProcessFailed(name() + what);
}

// On SIGUSR1, the process writes to the socket where each of its threads is.
void PythonProcess::fail_hung(double seconds, const char* limit) {
  ::kill(child_.pid, SIGUSR1);
  std::string text;
  std::array<char, 4096> bytes{};
  pollfd waiting{socket_.get(), POLLIN, 0};
  while (::poll(&waiting, 1, text.empty() ? 1000 : 100) > 0) {
    const ssize_t count = ::read(socket_.get(), bytes.data(), bytes.size());
    if (count <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  text.resize(std::min(text.size(), text.find("/wdtrain/worker.py")));  // who called the environment
  text.resize(text.rfind('\n') + 1);
  fail(concat("has not answered for ", seconds, " s (", limit, "): it is stopped",
              text.empty() ? "" : ". It was here:\n", text));
}

void PythonProcess::post(int room) {
  control().room = room;
  ring(control().posted, ++posted_);
}

void PythonProcess::await(Clock::time_point begun, double seconds, const char* limit) {
  const Word& done = control().done;
  for (std::int32_t seen = done.load(); seen != posted_; seen = done.load(std::memory_order_acquire)) {
    if (wait(done, seen, options_.spin_microseconds, kGlanceMilliseconds)) continue;
    if (options_.look) try {
        options_.look();
      } catch (...) {
        kill();
        throw;
      }
    if (has_ended() && done.load(std::memory_order_acquire) != posted_) fail(ending(status_));
    if (std::chrono::duration<double>(Clock::now() - begun).count() > seconds) fail_hung(seconds, limit);
  }
  stepping_ = false;
  if (control().failed == 0) return;
  control().failed = 0;
  fail(answer().value("error", std::string("raised an exception")));
}

std::string PythonProcess::read(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t count = ::read(socket_.get(), text.data() + at, bytes - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail(ends_within(kEndSeconds) ? ending(status_) : "has closed its connection");
    at += static_cast<std::size_t>(count);
  }
  return text;
}

nlohmann::json PythonProcess::answer() {
  std::uint32_t length = 0;
  std::memcpy(&length, read(sizeof length).data(), sizeof length);
  if (length > kMaxAnswer) fail("gives an answer that is none");
  nlohmann::json answer = parse_json(read(length));
  if (!answer.is_object()) fail("gives an answer that is no JSON");
  return answer;
}

void PythonProcess::send(const nlohmann::json& request, int descriptor) {
  send_frame(socket_.get(), dump(request), descriptor);
  post(kRequest);
}

nlohmann::json PythonProcess::call(const nlohmann::json& request, int descriptor) {
  if (stepping_) end_step();
  send(request, descriptor);
  await(Clock::now(), options_.start_seconds, "env.start_seconds");
  return answer();
}

void PythonProcess::begin_close(int room, Clock::time_point begun) {
  if (stepping_) await(begun, std::min(kCloseSeconds, options_.step_seconds), "a last step");
  send({{"do", "close"}, {"room", room}});
}

void PythonProcess::end_close(int /*room*/, Clock::time_point begun) {
  await(begun, kCloseSeconds, "close()");
  static_cast<void>(answer());
}

void PythonProcess::begin_step(int room) {
  post(room);
  stepping_ = true;
}

void PythonProcess::end_step() { await(Clock::now(), options_.step_seconds, "env.step_seconds"); }

}  // namespace wd::outside
