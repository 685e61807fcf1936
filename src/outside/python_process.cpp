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

using Clock = std::chrono::steady_clock;

constexpr int kRequest = -1, kEnd = -2;  // rooms
constexpr std::size_t kControlBytes = 4096;
constexpr int kGlanceMilliseconds = 50;  // between looks at whether the process is alive
constexpr double kEndSeconds = 5.0;
constexpr std::uint32_t kMaxAnswer = 1u << 30;

// Loads worker.py by its path, so that the modules beside it do not hide those of the user.
constexpr const char* kLoader =
    "import sys, importlib.util as u\n"
    "s = u.spec_from_file_location('wdtrain_worker', sys.argv[1])\n"
    "m = u.module_from_spec(s); sys.modules[s.name] = m; s.loader.exec_module(m); m.main(sys.argv[2:])";

std::filesystem::path library_folder() {
  return binary_path(reinterpret_cast<const void*>(&library_folder)).parent_path();
}

// In the build, and in an installation, whose libraries are in lib/ or lib/ARCHITECTURE/.
std::filesystem::path worker_file() {
  const std::filesystem::path folder = library_folder();
  for (const auto& root :
       {folder, folder.parent_path() / "share" / "wd", folder.parent_path().parent_path() / "share" / "wd"}) {
    const std::filesystem::path file = root / "python" / "wdtrain" / "worker.py";
    if (std::filesystem::exists(file)) return file;
  }
  throw UsageError(concat("python/wdtrain/worker.py is neither beside ", folder.string(),
                          " nor in share/wd: build or install the project anew"));
}

// One thread for each process, unless the user says more: there are as many processes as processors.
std::vector<std::pair<std::string, std::string>> thread_variables() {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const char* const name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    if (std::getenv(name) == nullptr) variables.emplace_back(name, "1");
  return variables;
}

std::string ending(int status) {
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
  // Ctrl-C reaches all processes of a terminal, and is this process's to deal with: the worker ignores it
  // from its start.
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, nullptr, &mask);
  sigaddset(&mask, SIGINT);
  try {
    child_ = start_child({.command = command,
                          .variables = thread_variables(),
                          .inherited = {memory_.descriptor(), ends[1]},
                          .keeps_stdout = true,
                          .keeps_stderr = true,
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

bool PythonProcess::has_ended() {
  if (!ended_) ended_ = ::waitpid(child_.pid, &status_, WNOHANG) == child_.pid;
  return ended_;
}

void PythonProcess::kill() {
  if (ended_) return;
  ::kill(child_.pid, SIGKILL);
  while (::waitpid(child_.pid, &status_, 0) < 0 && errno == EINTR) continue;
  ended_ = true;
}

void PythonProcess::fail(const std::string& what) {
  kill();
  throw ProcessFailed(
      concat("environment ", options_.environment, ": process ", number_, " (pid ", child_.pid, ") ", what));
}

// On SIGUSR1, the process writes to the socket where each of its threads is.
void PythonProcess::fail_hung(double seconds) {
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
  fail(concat("has not answered for ", seconds, " s (env.step_seconds, env.start_seconds): it is stopped",
              text.empty() ? "" : ". It was here:\n", text));
}

void PythonProcess::post(int room) {
  control().room = room;
  ring(control().posted, ++posted_);
}

void PythonProcess::await(double seconds) {
  const auto begun = Clock::now();
  const Word& done = control().done;
  for (std::int32_t seen = done.load(); seen != posted_; seen = done.load(std::memory_order_acquire)) {
    if (wait(done, seen, options_.spin_microseconds, kGlanceMilliseconds)) continue;
    if (has_ended() && done.load(std::memory_order_acquire) != posted_) fail(ending(status_));
    if (std::chrono::duration<double>(Clock::now() - begun).count() > seconds) fail_hung(seconds);
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
  return parse_json(read(length));
}

nlohmann::json PythonProcess::call(const nlohmann::json& request, int descriptor) {
  if (stepping_) await(options_.step_seconds);
  send_frame(socket_.get(), dump(request), descriptor);
  post(kRequest);
  await(options_.start_seconds);
  return answer();
}

void PythonProcess::begin_step(int room) {
  post(room);
  stepping_ = true;
}

void PythonProcess::end_step() { await(options_.step_seconds); }

}  // namespace wd::outside
