// output.h: what workers write, line by line: to the launcher's stderr and, once the run has a folder, to
// rank_R.log.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/files.h"
#include "src/launcher/child.h"
#include "src/launcher/console.h"

namespace wd::launcher {

// Cuts bytes into lines: too long ones into pieces, without control characters.
class LineCutter {
 public:
  // The lines that are complete now, each with its end of line.
  std::vector<std::string> add(std::string_view bytes);
  // The rest, as a line; empty where there is none.
  std::string rest();

 private:
  std::string partial_;
};

// The output of one worker, in one attempt. Nothing here throws: a log that cannot be written is done
// without.
class WorkerOutput {
 public:
  WorkerOutput(int rank, Console& console) : rank_(rank), console_(console) {}

  void add(Descriptor pipe);
  // The log's place, and the line that separates attempts where this is not the first.
  void open_log(const std::filesystem::path& run_folder, int restart);

  std::vector<int> descriptors() const;
  void read();   // some of what there is
  void close();  // what is left of a worker that has ended, and its last lines

 private:
  struct Source {
    Descriptor pipe;
    LineCutter lines;
  };

  bool read_once(Source& source);  // whether there was something
  void emit(const std::vector<std::string>& lines);
  void log(const std::string& text);

  int rank_;
  Console& console_;
  std::vector<Source> sources_;
  std::optional<File> log_;
  bool log_known_ = false;
  std::string before_log_;
  std::size_t left_out_ = 0;  // [bytes]
};

}  // namespace wd::launcher
