// display_test.cpp: the progress line on pipes, closed pipes and terminals of any width.
#include "src/run/display.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <sstream>

#include "src/base/streams.h"
#include "src/report/format.h"

namespace wd::run {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Progress progress_at(std::int64_t iteration) {
  Progress progress;
  progress.counts = {
      .iteration = iteration, .env_steps = iteration * 10'000, .agent_steps = iteration * 50'000};
  progress.wall_s = static_cast<double>(iteration);
  progress.mean_return = {{"tagger", 12.306}, {"runner", std::numeric_limits<double>::quiet_NaN()}};
  progress.device_bytes = std::uint64_t{3} << 30;
  return progress;
}

// A write end, and the read end that receives what is written there.
struct Ends {
  int write_end = -1;
  int read_end = -1;

  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() {
    ::close(write_end);
    ::close(read_end);
  }

  // Everything until nothing more comes for a while: a terminal passes long text on in pieces.
  std::string text() const {
    constexpr int kQuietMs = 20;
    std::array<char, 4096> buffer;
    std::string all;
    pollfd more{.fd = read_end, .events = POLLIN, .revents = 0};
    while (::poll(&more, 1, kQuietMs) == 1) {
      const ssize_t got = ::read(read_end, buffer.data(), buffer.size());
      if (got <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return all;
  }
};

void open_pipe(Ends& ends) {
  int both[2];
  ASSERT_EQ(::pipe2(both, O_NONBLOCK), 0);
  ends.read_end = both[0];
  ends.write_end = both[1];
}

void set_columns(const Ends& ends, unsigned short columns, unsigned short rows = 24) {
  winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(ends.write_end, TIOCSWINSZ, &size), 0);
}

void open_terminal(Ends& ends, unsigned short columns, unsigned short rows = 24) {
  ends.read_end = ::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  ASSERT_EQ(::grantpt(ends.read_end), 0);
  ASSERT_EQ(::unlockpt(ends.read_end), 0);
  ends.write_end = ::open(::ptsname(ends.read_end), O_RDWR | O_NOCTTY);
  set_columns(ends, columns, rows);
  ::setenv("TERM", "xterm", 1);
  ::setenv("NO_COLOR", "1", 1);
}

TEST(Display, OnePlainLineAnInterval) {
  Ends ends;
  open_pipe(ends);
  Display display({.total_steps = 100'000, .descriptor = ends.write_end});
  display.show(progress_at(1));
  EXPECT_EQ(
      ends.text(),
      "iteration 1 | 10.0k/100k steps | 10.0k steps/s | return tagger 12.31 runner - | eta 9s | 3.0 GiB\n");
  display.show(progress_at(2));
  EXPECT_THAT(ends.text(), StartsWith("iteration 2 | 20.0k/100k steps"));
  display.end(progress_at(2));
  EXPECT_EQ(ends.text(), "") << "nothing new to say";
  Progress last = progress_at(3);
  last.last = true;
  display.show(last);
  EXPECT_THAT(ends.text(), testing::AllOf(HasSubstr("3.0 GiB"), Not(HasSubstr("eta"))));
}

TEST(Display, SaysWhenTheTimeEndsBeforeTheSteps) {
  Ends ends;
  open_pipe(ends);
  Display early({.total_steps = 100'000, .max_seconds = 6.0, .descriptor = ends.write_end});
  early.show(progress_at(1));
  EXPECT_THAT(ends.text(), testing::AllOf(HasSubstr(" | stops in 5s | "), Not(HasSubstr("eta"))));
  Display late({.total_steps = 100'000, .max_seconds = 60.0, .descriptor = ends.write_end});
  late.show(progress_at(1));
  EXPECT_THAT(ends.text(), testing::AllOf(HasSubstr(" | eta 9s | "), Not(HasSubstr("stops"))));
}

TEST(Display, RedrawsInPlace) {
  Ends ends;
  open_terminal(ends, 160);
  Display display({.max_seconds = 100.0, .descriptor = ends.write_end});
  display.show(progress_at(1));
  const std::string first = ends.text();
  EXPECT_THAT(first, StartsWith("\r \x1b[J\r[--------------------] 1 % | iteration 1 | 10.0k steps | "));
  EXPECT_THAT(first, HasSubstr("stops in 1m39s"));
  EXPECT_THAT(first, Not(HasSubstr("\n")));
  Progress soon = progress_at(1);
  soon.counts.iteration = 2;
  soon.wall_s += 0.01;
  display.show(soon);
  EXPECT_EQ(ends.text(), "") << "at most ten times a second";
  display.end(soon);
  EXPECT_THAT(ends.text(),
              testing::AllOf(HasSubstr(" | iteration 2"), EndsWith("\n"), Not(HasSubstr("eta"))));
}

TEST(Display, MakesRoomForATable) {
  Ends ends;
  open_terminal(ends, 120);
  Display display({.descriptor = ends.write_end});
  display.make_room();
  EXPECT_EQ(ends.text(), "") << "there is no line yet";
  display.show(progress_at(1));
  static_cast<void>(ends.text());
  display.make_room();
  EXPECT_EQ(ends.text(), "\r \x1b[J\r");
  display.show(progress_at(2));
  EXPECT_THAT(ends.text(), StartsWith("\r \x1b[J\riteration 2"));
}

TEST(Display, NarrowTerminalsKeepReturnAndEta) {
  Ends ends;
  open_terminal(ends, 46);
  Display display({.total_steps = 100'000, .descriptor = ends.write_end});
  display.show(progress_at(1));
  EXPECT_EQ(ends.text(), "\r \x1b[J\rreturn tagger 12.31 runner - | eta 9s");
}

TEST(Display, FitsAnyWidth) {
  for (unsigned short columns : {1, 2, 10, 20, 40, 79, 80, 200}) {
    Ends ends;
    open_terminal(ends, columns);
    Display display({.descriptor = ends.write_end});
    display.show(progress_at(1));
    const std::size_t erase = std::string("\r \x1b[J\r").size();
    const std::string line = ends.text();
    ASSERT_GE(line.size(), erase);
    EXPECT_LT(line.size() - erase, columns);
  }
}

MetricsRow row_at(std::int64_t iteration) {
  MetricsRow row(
      {.iteration = iteration, .env_steps = iteration * 10'000, .agent_steps = iteration * 50'000});
  row.add("tagger/recent_return", 12.306);
  row.add("time/update_s", 1.0);
  return row;
}

TEST(Display, AWideTerminalShowsATable) {
  Ends ends;
  open_terminal(ends, 120);
  Display display({.descriptor = ends.write_end});
  display.measured(row_at(1));
  display.show(progress_at(1));
  const std::string first = ends.text();
  EXPECT_THAT(first, StartsWith("\r \x1b[J\riteration 1 | 10.0k steps"));
  EXPECT_THAT(first, HasSubstr("\r\n  policy    return"));
  EXPECT_THAT(first, HasSubstr("\r\n  tagger    12.306"));
  EXPECT_THAT(first, EndsWith("\r\n  time: update 100 %\r\x1b[4A")) << "the cursor rests in the first line";
  EXPECT_THAT(first, Not(HasSubstr("| return"))) << "is in the table";
  display.show(progress_at(2));
  EXPECT_THAT(ends.text(), StartsWith("\r \x1b[J\riteration 2"));
  display.make_room();
  EXPECT_EQ(ends.text(), "\r \x1b[J\r");
  display.end(progress_at(3));
  EXPECT_THAT(ends.text(),
              testing::AllOf(StartsWith("\r \x1b[J\riteration 3"), EndsWith("time: update 100 %\r\n")));
}

TEST(Display, ColorsTheBarAndWhatIsLessImportant) {
  Ends ends;
  open_terminal(ends, 120);
  ::unsetenv("NO_COLOR");
  Display display({.total_steps = 40'000, .descriptor = ends.write_end});
  display.measured(row_at(1));
  display.show(progress_at(1));
  const std::string first = ends.text();
  EXPECT_THAT(first, HasSubstr("\r[\x1b[32m=====\x1b[0m---------------] 25 % | iteration 1"));
  EXPECT_THAT(first, HasSubstr("\r\n\x1b[2m  policy    return"));
  EXPECT_THAT(first, HasSubstr("\r\n  tagger    12.306"));
  EXPECT_THAT(first, EndsWith("\r\n\x1b[2m  time: update 100 %\x1b[0m\r\x1b[4A"));
  display.end(progress_at(4));
  EXPECT_THAT(ends.text(), HasSubstr("[\x1b[32m====================\x1b[0m] 100 % | iteration 4"));
}

TEST(Display, TheTableFitsAnUsualTerminal) {
  for (const unsigned short columns : {80, 100}) {
    Ends ends;
    open_terminal(ends, columns);
    Display display({.descriptor = ends.write_end});
    display.measured(row_at(1));
    display.show(progress_at(1));
    const std::string text = ends.text();
    EXPECT_THAT(text, testing::AllOf(HasSubstr("entropy"), HasSubstr("loss"), HasSubstr("KL")));
    std::istringstream lines(text.substr(text.find('\n') + 1));
    for (std::string line; std::getline(lines, line) && line.find('\x1b') == std::string::npos;)
      EXPECT_LE(line.size(), columns) << "with the carriage return";
  }
}

TEST(Display, ANarrowOrLowTerminalShowsTheLineOnly) {
  for (const auto& [columns, rows] : {std::pair<unsigned short, unsigned short>{36, 24}, {120, 8}}) {
    Ends ends;
    open_terminal(ends, columns, rows);
    Display display({.descriptor = ends.write_end});
    display.measured(row_at(1));
    display.show(progress_at(1));
    EXPECT_THAT(ends.text(), testing::AllOf(HasSubstr("return tagger 12.31"), Not(HasSubstr("policy"))));
  }
}

TEST(Display, APipeGetsNoTable) {
  Ends ends;
  open_pipe(ends);
  Display display({.descriptor = ends.write_end});
  display.measured(row_at(1));
  display.show(progress_at(1));
  EXPECT_THAT(ends.text(), Not(HasSubstr("policy")));
}

TEST(Display, DumbTerminalGetsPlainLines) {
  Ends ends;
  open_terminal(ends, 80);
  ::setenv("TERM", "dumb", 1);
  Display display({.descriptor = ends.write_end});
  display.show(progress_at(1));
  EXPECT_THAT(ends.text(), StartsWith("iteration 1"));
}

TEST(Display, LeastImportantFieldsGoFirst) {
  const std::vector<DisplayField> fields{{"aaaa", 0}, {"bbbb", 2}, {"cccc", 1}};
  EXPECT_EQ(fit_line(fields, 18), "aaaa | bbbb | cccc");
  EXPECT_EQ(fit_line(fields, 17), "aaaa | cccc");
  EXPECT_EQ(fit_line(fields, 10), "aaaa");
  EXPECT_EQ(fit_line(fields, 2), "aa");
  EXPECT_EQ(fit_line(fields, 0), "");
}

TEST(Display, QuietSaysNothing) {
  Ends ends;
  open_pipe(ends);
  Display display({.quiet = true, .descriptor = ends.write_end});
  display.show(progress_at(1));
  display.end(progress_at(2));
  EXPECT_EQ(ends.text(), "");
}

TEST(Display, AReaderMayGoAway) {
  survive_closed_streams();
  Ends ends;
  open_pipe(ends);
  ::close(std::exchange(ends.read_end, -1));
  Display display({.descriptor = ends.write_end});
  display.show(progress_at(1));
  display.end(progress_at(2));
  Display closed({.descriptor = 999});
  closed.show(progress_at(1));
}

TEST(Format, Counts) {
  EXPECT_EQ(report::format_count(0), "0");
  EXPECT_EQ(report::format_count(999), "999");
  EXPECT_EQ(report::format_count(999.7), "1.00k");
  EXPECT_EQ(report::format_count(12'345), "12.3k");
  EXPECT_EQ(report::format_count(999'999), "1.00M");
  EXPECT_EQ(report::format_count(-1'234'567), "-1.23M");
  EXPECT_EQ(report::format_count(123e9), "123G");
}

TEST(Format, Durations) {
  EXPECT_EQ(report::format_duration(0), "0s");
  EXPECT_EQ(report::format_duration(59.7), "1m00s");
  EXPECT_EQ(report::format_duration(65), "1m05s");
  EXPECT_EQ(report::format_duration(7'380), "2h03m");
  EXPECT_EQ(report::format_duration(90'000), "1d01h");
  EXPECT_EQ(report::format_duration(std::numeric_limits<double>::infinity()), "?");
}

TEST(Format, BytesAndReturns) {
  EXPECT_EQ(report::format_bytes(std::uint64_t{300} << 20), "300 MiB");
  EXPECT_EQ(
      report::format_bytes(1) + ", " + report::format_bytes(64 * 1024) + ", " + report::format_bytes(1 << 20),
      "1 KiB, 64 KiB, 1 MiB");
  EXPECT_EQ(report::format_bytes(std::uint64_t{1100} << 20), "1.1 GiB");
  EXPECT_EQ(report::format_return(-3.2), "-3.20");
  EXPECT_EQ(report::format_return(1.234e6), "1.23M");
  EXPECT_EQ(report::counted(1, "role") + ", " + report::counted(2, "agent"), "1 role, 2 agents");
}

}  // namespace
}  // namespace wd::run
