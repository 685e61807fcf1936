// child_process.cpp: starts a process. Between fork and exec, no function is called that could wait for a
// lock or allocate.
#include "src/base/child_process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "src/base/files.h"

namespace wd {
namespace {

// Variables that the launcher sets only for some workers, and variables that would make a worker take another
// program for its launcher.
constexpr std::array<std::string_view, 5> kNotInherited = {"WD_STORE_FD", "WD_RESTART_DIR", "WD_TOKEN",
                                                           "WD_STATUS_FD", "TORCHELASTIC_USE_AGENT_STORE"};
constexpr std::array kDefaultSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGPIPE};

struct Pipe {
  Descriptor read_end, write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_file_error("pipe", "open it");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<std::string> make_environment(const ChildPlan& plan) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('='));
    const auto replaces = [name](const auto& variable) { return variable.first == name; };
    if (std::ranges::any_of(plan.variables, replaces) || std::ranges::count(kNotInherited, name) > 0)
      continue;
    result.emplace_back(text);
  }
  for (const auto& [name, value] : plan.variables) result.push_back(name + '=' + value);
  return result;
}

// Ends with a null pointer, as execve() requires.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Prepared {
  std::vector<char*> arguments, environment;
  int nothing = -1, out = -1, err = -1, report = -1;
  pid_t launcher = 0;
};

[[noreturn]] void become_worker(const ChildPlan& plan, const Prepared& prepared) {
  if (plan.apart) {
    ::setpgid(0, 0);
    ::dup2(prepared.nothing, STDIN_FILENO);
  }
  ::prctl(PR_SET_PDEATHSIG, plan.apart ? plan.death_signal : SIGKILL);
  // Closes a race: if the launcher died before prctl(), this process already has another parent.
  if (::getppid() != prepared.launcher) ::_exit(EXIT_FAILURE);
  for (const int signal : kDefaultSignals) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    const bool stays_ignored =
        action.sa_handler == SIG_IGN && signal != SIGPIPE && signal != plan.death_signal;
    if (!stays_ignored) ::signal(signal, SIG_DFL);
  }
  if (prepared.out >= 0) ::dup2(prepared.out, STDOUT_FILENO);
  if (prepared.err >= 0) ::dup2(prepared.err, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int descriptor : plan.inherited) ::fcntl(descriptor, F_SETFD, 0);
  ::sigprocmask(SIG_SETMASK, &plan.signal_mask, nullptr);
  ::execve(prepared.arguments.front(), prepared.arguments.data(), prepared.environment.data());
  const int cause = errno;
  static_cast<void>(::write(prepared.report, &cause, sizeof(cause)));
  ::_exit(EXIT_FAILURE);
}

// Returns 0 if exec succeeded and closed the pipe, and the cause of its failure otherwise.
int read_report(const Descriptor& report) {
  int cause = 0;
  while (::read(report.get(), &cause, sizeof(cause)) < 0 && errno == EINTR) continue;
  return cause;
}

pid_t fork_worker(const ChildPlan& plan, const Prepared& prepared) {
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) become_worker(plan, prepared);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw_file_error(plan.command.front(), "start a process for it");
  return pid;
}

}  // namespace

Child start_child(const ChildPlan& plan) {
  Pipe out, err, report = make_pipe();
  if (!plan.keeps_stdout) out = make_pipe();
  if (!plan.keeps_stderr) err = make_pipe();
  const Descriptor nothing(plan.apart ? ::open("/dev/null", O_RDONLY | O_CLOEXEC) : -1);
  const std::vector<std::string> environment = make_environment(plan);
  const Prepared prepared{.arguments = pointers_to(plan.command),
                          .environment = pointers_to(environment),
                          .nothing = nothing.get(),
                          .out = out.write_end.get(),
                          .err = err.write_end.get(),
                          .report = report.write_end.get(),
                          .launcher = ::getpid()};
  Child child{.pid = fork_worker(plan, prepared)};
  report.write_end.close();
  if (const int cause = read_report(report.read_end); cause != 0) {
    ::waitpid(child.pid, nullptr, 0);
    errno = cause;
    throw_file_error(plan.command.front(), "start it");
  }
  child.out = std::move(out.read_end);
  child.err = std::move(err.read_end);
  for (const Descriptor* end : {&child.out, &child.err}) {
    if (*end) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  }
  return child;
}

}  // namespace wd
