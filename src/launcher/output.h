// output.h: passes the workers' output line by line to the launcher's stderr and, once the run has a folder,
// to rank_R.log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/child_process.h"
#include "src/base/files.h"
#include "src/launcher/console.h"

namespace wd::launcher {

// Splits bytes into lines. Cuts lines that are too long into pieces, and removes control characters.
class LineCutter {
 public:
  // Returns the lines that are now complete, each with its line end.
  std::vector<std::string> add(std::string_view bytes);
  // Returns the remaining text as a line. Empty if there is none.
  std::string rest();

 private:
  std::string partial_;
};

// The output of one worker in one attempt. Nothing here throws: if a log cannot be written, the worker has no
// log.
class WorkerOutput {
 public:
  WorkerOutput(int rank, Console& console) : rank_(rank), console_(console) {}

  void add(Descriptor pipe);
  // Opens the log, and writes the line that separates attempts unless this is the first one.
  void open_log(const std::filesystem::path& run_folder, int restart);

  std::vector<int> descriptors() const;
  void read();   // reads some of the available output
  void close();  // reads the remaining output of a worker that has ended, up to its last line

 private:
  struct Source {
    Descriptor pipe;
    LineCutter lines;
  };

  bool read_once(Source& source);  // returns whether there was any output
  void emit(const std::vector<std::string>& lines);
  void log(const std::string& text);

  int rank_;
  Console& console_;
  std::vector<Source> sources_;
  std::optional<File> log_;
  bool log_known_ = false;
  std::string before_log_;
  std::size_t left_out_ = 0;  // [bytes] dropped
};

}  // namespace wd::launcher
