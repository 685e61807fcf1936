// output.cpp: reads pipes and splits their data into lines.
#include "src/launcher/output.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "src/base/printable.h"
#include "wd/error.h"

namespace wd::launcher {
namespace {

constexpr std::size_t kLongestLine = 4096;
constexpr std::size_t kMaxBeforeLog = std::size_t{1} << 20;  // [bytes] per worker before the run has a folder
constexpr int kLastReads = 64;  // a child of the worker may hold the pipe open and keep writing

// Returns the length at which a line that is too long is cut. The cut is not inside a UTF-8 character.
std::size_t piece_of(std::string_view line) {
  if (line.size() <= kLongestLine) return line.size();
  std::size_t cut = kLongestLine;
  while (cut > kLongestLine - 4 && (static_cast<unsigned char>(line[cut]) & 0xc0U) == 0x80U) --cut;
  return cut;
}

void add_pieces(std::string_view line, std::vector<std::string>& lines) {
  do {
    const std::size_t size = piece_of(line);
    lines.push_back(without_controls(line.substr(0, size)) + '\n');
    line.remove_prefix(size);
  } while (!line.empty());
}

}  // namespace

std::vector<std::string> LineCutter::add(std::string_view bytes) {
  std::vector<std::string> lines;
  partial_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line = std::string_view(partial_).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    add_pieces(line, lines);
  }
  partial_.erase(0, begin);
  while (partial_.size() > kLongestLine) {
    const std::size_t size = piece_of(partial_);
    add_pieces(std::string_view(partial_).substr(0, size), lines);
    partial_.erase(0, size);
  }
  return lines;
}

std::string LineCutter::rest() {
  const std::string line = partial_.empty() ? "" : without_controls(partial_) + '\n';
  partial_.clear();
  return line;
}

void WorkerOutput::add(Descriptor pipe) {
  if (pipe) sources_.push_back({std::move(pipe), {}});
}

void WorkerOutput::open_log(const std::filesystem::path& run_folder, int restart) {
  if (log_known_) return;
  log_known_ = true;
  const std::filesystem::path path = run_folder / concat("rank_", rank_, ".log");
  try {
    log_.emplace(path, O_WRONLY | O_APPEND | O_CREAT, FileKind::kOwn);
  } catch (const std::runtime_error& error) {
    console_.say(Level::kWarning, concat(error.what(), ": this worker has no log"));
  }
  if (restart > 0) log(concat("--- restart ", restart, " ---\n"));
  log(std::exchange(before_log_, ""));
  if (left_out_ > 0) log(concat("(", left_out_, " bytes left out here: the run had no folder yet)\n"));
}

std::vector<int> WorkerOutput::descriptors() const {
  std::vector<int> result;
  for (const Source& source : sources_) {
    if (source.pipe) result.push_back(source.pipe.get());
  }
  return result;
}

void WorkerOutput::read() {
  for (Source& source : sources_) read_once(source);
}

void WorkerOutput::close() {
  for (Source& source : sources_) {
    for (int k = 0; k < kLastReads && read_once(source); ++k) continue;
    source.pipe.close();
    if (const std::string line = source.lines.rest(); !line.empty()) emit({line});
  }
}

bool WorkerOutput::read_once(Source& source) {
  static std::array<char, 65536> buffer;  // pipe capacity
  if (!source.pipe) return false;
  const ssize_t got = ::read(source.pipe.get(), buffer.data(), buffer.size());
  if (got > 0) emit(source.lines.add({buffer.data(), static_cast<std::size_t>(got)}));
  const bool ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (ended) source.pipe.close();
  return got > 0;
}

void WorkerOutput::emit(const std::vector<std::string>& lines) {
  std::string shown, logged;
  for (const std::string& line : lines) {
    shown += concat("[rank ", rank_, "] ", line);
    logged += line;
  }
  if (shown.empty()) return;
  console_.lines(shown);
  log(logged);
}

void WorkerOutput::log(const std::string& text) {
  if (!log_known_) {
    const bool fits = before_log_.size() + text.size() <= kMaxBeforeLog && left_out_ == 0;
    if (fits) before_log_ += text;
    if (!fits) left_out_ += text.size();
    return;
  }
  if (!log_) return;
  try {
    log_->write(bytes_of(text));
  } catch (const std::runtime_error&) {
    log_.reset();  // perhaps the disk is full: training continues without a log
  }
}

}  // namespace wd::launcher
