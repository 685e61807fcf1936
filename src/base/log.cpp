// log.cpp: the only file that uses spdlog. It must not include torch headers, because their copy of fmt hides
// the one that spdlog needs.
#define SPDLOG_FMT_EXTERNAL
#define FMT_HEADER_ONLY  // as headers, spdlog and fmt are no libraries that a wheel would have to bring
#include "src/base/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "src/base/files.h"
#include "src/base/outlet.h"
#include "src/base/printable.h"
#include "src/base/terminal.h"

namespace wd::logging {
namespace {

constexpr const char* kFilePattern = "%Y-%m-%d %H:%M:%S.%e %l: %v";
constexpr std::size_t kMaxEarly = 1000;  // messages before a run has its folder

// Writes "warning: " or "error: " before a message that needs attention, and nothing before the others.
class Prefix : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& into) override {
    if (message.level == spdlog::level::info) return;
    const auto name = spdlog::level::to_string_view(message.level);
    into.append(name.data(), name.data() + name.size());
    into.append(std::string_view(": "));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Prefix>(); }
};

// A reader of stderr that pauses (a pager, Ctrl-S) must not stop training. One message waits briefly for the
// reader; later messages are then dropped until it reads again. log.txt contains all of them.
class Console : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit Console(bool colors) : colors_(colors) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (stalled_ && !takes_output(STDERR_FILENO)) return;
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string text(line.data(), line.size());
    if (colors_ && message.level != spdlog::level::info) {
      text.insert(message.color_range_end, "\033[m");
      text.insert(message.color_range_start,
                  message.level == spdlog::level::warn ? "\033[33m\033[1m" : "\033[31m\033[1m");
    }
    // A terminal that takes some bytes may not take a whole line. Its descriptor may be another one than at
    // the last message.
    Outlet out(STDERR_FILENO, kMaxLine);
    out.write(stalled_ ? "\n" + text : text);  // the last line may have ended early
    if (!stalled_) out.finish();
    stalled_ = !out.is_empty();
  }
  void flush_() override {}

 private:
  static constexpr std::size_t kMaxLine = std::size_t{1} << 20;
  bool colors_, stalled_ = false;
};

// Appends to a file that only this program creates. Links are not followed. A write that fails never throws:
// the log must not change how a training ends, or hide why it ended.
class LogFile : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LogFile(const std::filesystem::path& path)
      : file_(path, O_WRONLY | O_CREAT | O_APPEND, FileKind::kOwn) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    try {
      file_.write(bytes_of({line.data(), line.size()}));
      failing_ = false;
    } catch (const std::exception& error) {
      if (!std::exchange(failing_, true))
        std::fprintf(stderr, "error: %s: messages are missing there\n", error.what());
    }
  }
  void flush_() override {}

 private:
  File file_;
  bool failing_ = false;
};

struct Logger {
  std::shared_ptr<Console> console;
  std::shared_ptr<spdlog::sinks::dist_sink_mt> sinks;
  spdlog::sink_ptr file;
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> early;  // messages from before there is a file
  std::unique_ptr<spdlog::logger> front;

  Logger()
      : console(std::make_shared<Console>(shows_colours(STDERR_FILENO))),
        sinks(std::make_shared<spdlog::sinks::dist_sink_mt>()),
        early(std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(kMaxEarly)) {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    // On a terminal, live lines may be at the position of this message. Erase them first; they are redrawn
    // below the message.
    const std::string erase = is_live_terminal(STDERR_FILENO) ? kEraseLive : "";
    formatter->add_flag<Prefix>('*').set_pattern(erase + "%^%*%$%v");
    console->set_formatter(std::move(formatter));
    sinks->add_sink(console);
    sinks->add_sink(early);
    front = std::make_unique<spdlog::logger>("wd", sinks);
    front->flush_on(spdlog::level::info);
    front->set_error_handler([told = false](const std::string& cause) mutable {
      if (!std::exchange(told, true)) std::fprintf(stderr, "error: log: %s\n", cause.c_str());
    });
  }
};

Logger& logger() {
  static Logger instance;
  return instance;
}

// Of a thread that works for a member of a population.
struct Own {
  std::string label;
  spdlog::sink_ptr file;
};
thread_local std::optional<Own> own;

void write_to(spdlog::sinks::sink& sink, spdlog::level::level_enum level, std::string_view message) {
  if (sink.should_log(level)) sink.log({"wd", level, spdlog::string_view_t(message)});
  sink.flush();
}

void write(spdlog::level::level_enum level, std::string_view message) {
  if (own) {
    const std::string text(without_controls(message));
    if (own->file) write_to(*own->file, level, text);
    static std::mutex mutex;
    static std::set<std::string> said;
    const std::lock_guard lock(mutex);
    if (level != spdlog::level::info && said.insert(text).second)
      write_to(*logger().console, level, own->label + ": " + text);
    return;
  }
  logger().front->log(level, spdlog::string_view_t(without_controls(message)));
}

}  // namespace

void info(std::string_view message) { write(spdlog::level::info, message); }
void warn(std::string_view message) { write(spdlog::level::warn, message); }
void error(std::string_view message) { write(spdlog::level::err, message); }

void to_file(std::string_view message) {
  if (const spdlog::sink_ptr file = own ? own->file : logger().file)
    write_to(*file, spdlog::level::info, without_controls(message));
}

void quiet() { logger().console->set_level(spdlog::level::warn); }

void attach_file(const std::filesystem::path& path) {
  detach_file();
  auto file = std::make_shared<LogFile>(path);
  file->set_pattern(kFilePattern);
  if (own) {
    own->file = std::move(file);
    return;
  }
  if (logger().early) {
    for (const spdlog::details::log_msg_buffer& message : logger().early->last_raw()) file->log(message);
    logger().sinks->remove_sink(logger().early);
    logger().early = nullptr;
  }
  logger().sinks->add_sink(file);
  logger().file = file;
}

void detach_file() {
  if (own) own->file = nullptr;
  if (own || !logger().file) return;
  logger().sinks->remove_sink(logger().file);
  logger().file = nullptr;
}

Labelled::Labelled(std::string label) { own = Own{std::move(label), nullptr}; }
Labelled::~Labelled() { own.reset(); }

}  // namespace wd::logging
