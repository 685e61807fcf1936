// display.cpp: the progress line that users watch, and the table below it.
#include "src/run/display.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "src/base/terminal.h"
#include "src/report/format.h"
#include "src/run/live_table.h"
#include "src/run/seconds_left.h"
#include "wd/error.h"

namespace wd::run {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr std::string_view kSeparator = " | ", kReturn = "return";
constexpr std::size_t kMaxWaiting = std::size_t{1} << 14;  // [bytes], more than a hundred lines

// Resident memory of this process; 0 if Linux does not report it.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  if (!(statm >> all >> resident)) return 0;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string steps_text(const Progress& progress, std::int64_t total_steps) {
  const std::string done = report::format_count(static_cast<double>(progress.counts.env_steps));
  if (total_steps <= 0) return done + " steps";
  return done + '/' + report::format_count(static_cast<double>(total_steps)) + " steps";
}

std::string return_text(const Progress& progress) {
  std::string text(kReturn);
  for (const auto& [policy, value] : progress.mean_return)
    text += ' ' + policy + ' ' + report::format_return(value);
  return text;
}

// "[=====---------------] 25 %".
std::string bar(double share) {
  constexpr double kCells = 20.0;
  const auto done = static_cast<std::size_t>(share * kCells);
  return concat('[', std::string(done, '='), std::string(static_cast<std::size_t>(kCells) - done, '-'),
                report::format_number("] %.0f %%", 100.0 * share));
}

// The bar in green, all below the first line but policies in gray.
void color(std::vector<std::string>& lines) {
  std::string& first = lines.front();
  if (const std::size_t begin = first.find("[="); begin != std::string::npos) {
    const std::size_t end = first.find_first_not_of('=', begin + 1);
    first = concat(first.substr(0, begin + 1), "\x1b[32m", first.substr(begin + 1, end - begin - 1),
                   "\x1b[0m", first.substr(end));
  }
  for (std::size_t k = 1; k < lines.size(); ++k)
    if (k == 1 || lines[k].starts_with("  time: ")) lines[k] = concat("\x1b[2m", lines[k], "\x1b[0m");
}

}  // namespace

std::string fit_line(std::vector<DisplayField> fields, std::size_t width) {
  const auto join = [&fields] {
    std::string line;
    for (const DisplayField& field : fields)
      line += (line.empty() ? "" : std::string(kSeparator)) + field.text;
    return line;
  };
  std::string line = join();
  while (line.size() > width && fields.size() > 1) {
    fields.erase(std::ranges::max_element(fields, {}, &DisplayField::importance));
    line = join();
  }
  return line.substr(0, width);
}

Display::Display(const DisplayOptions& options)
    : options_(options),
      out_(options.descriptor, kMaxWaiting),
      live_(is_live_terminal(options.descriptor)),
      colored_(shows_colours(options.descriptor)) {}

void Display::show(const Progress& progress) {
  if (live_ && line_open_ && progress.wall_s - drawn_at_s_ < kRedrawSeconds) return;
  draw(progress, false);
}

void Display::end(const Progress& progress) {
  // An interval that already has its plain line gets no second one.
  if (live_ || progress.counts.env_steps != drawn_steps_) draw(progress, true);
  if (line_open_) out_.write("\n");
  line_open_ = false;
  out_.finish();
}

void Display::draw(const Progress& progress, bool ended) {
  if (options_.quiet) return;
  const double elapsed = progress.wall_s - std::max(drawn_at_s_, 0.0);
  const std::int64_t steps = progress.counts.env_steps - drawn_steps_;
  if (elapsed > 0.0 && steps > 0) steps_per_s_ = static_cast<double>(steps) / elapsed;
  drawn_at_s_ = progress.wall_s;
  drawn_steps_ = progress.counts.env_steps;

  // Users look first for how good the policy is and how long training takes, so these fields are kept
  // longest.
  std::vector<DisplayField> fields{{concat("iteration ", progress.counts.iteration), 4},
                                   {steps_text(progress, options_.total_steps), 2},
                                   {report::format_count(steps_per_s_) + " steps/s", 3}};
  if (!progress.mean_return.empty()) fields.push_back({return_text(progress), 0});
  const auto [left, by_time] = time_left(static_cast<double>(progress.counts.env_steps), progress.wall_s,
                                         {static_cast<double>(options_.total_steps), options_.max_seconds});
  if (!ended && !progress.last && std::isfinite(left))
    fields.push_back({(by_time ? "stops in " : "eta ") + report::format_duration(left), 1});
  fields.push_back(
      {report::format_bytes(progress.device_bytes > 0 ? progress.device_bytes : resident_bytes()), 6});

  if (live_ && std::isfinite(left) && progress.wall_s > 0.0)
    fields.insert(fields.begin(), {bar(progress.wall_s / (progress.wall_s + left)), 5});
  if (!live_) return out_.write(fit_line(std::move(fields), std::string::npos) + '\n');
  out_.flush();
  if (!out_.is_empty()) return;  // a stopped terminal gets no more than what it showed when it stopped
  const std::vector<std::string> lines = live_lines(std::move(fields), progress);
  std::string text = kEraseLive;
  for (const std::string& line : lines) text += (&line == &lines.front() ? "" : "\r\n") + line;
  // The cursor rests in the first line, where messages of any process replace what is live.
  if (!ended && lines.size() > 1) text += concat("\r\x1b[", lines.size() - 1, "A");
  out_.write(text);
  line_open_ = true;
}

// The progress line, and the table if the terminal is wide and high enough. One column stays free, because a
// character in the last one makes some terminals wrap.
std::vector<std::string> Display::live_lines(std::vector<DisplayField> fields,
                                             const Progress& progress) const {
  const auto columns = static_cast<std::size_t>(std::max(terminal_width(options_.descriptor) - 1, 0));
  std::vector<std::string> lines;
  if (row_ && !progress.mean_return.empty()) {
    std::vector<std::string> policies;
    for (const auto& [policy, value] : progress.mean_return) policies.push_back(policy);
    lines = live_table(values_of(*row_), policies, columns);
    // Messages above the table stay visible.
    constexpr std::size_t kFreeRows = 4;
    if (lines.size() + 1 + kFreeRows > static_cast<std::size_t>(terminal_height(options_.descriptor)))
      lines.clear();
  }
  if (!lines.empty())
    std::erase_if(fields, [](const DisplayField& field) { return field.text.starts_with(kReturn); });
  lines.insert(lines.begin(), fit_line(std::move(fields), columns));
  if (colored_) color(lines);
  return lines;
}

void Display::make_room() {
  if (line_open_) out_.write(kEraseLive);
}

}  // namespace wd::run
