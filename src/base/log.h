// log.h: messages for people, on stderr and, once a run has a folder, in its log.txt. The library throws and
// the program logs: only the command line, the trainer and the run's files call these functions. Only
// attach_file() throws: if log.txt cannot be written later, stderr says so, once.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace wd::logging {

void info(std::string_view message);
void warn(std::string_view message);
void error(std::string_view message);

// Writes only to log.txt, if there is one: for information that people have already received in another way.
void to_file(std::string_view message);

// From now on stderr shows only warnings and errors. log.txt still gets everything.
void quiet();

// Also appends messages to this file until detach_file() is called. The first file also gets the earlier
// messages. Throws std::runtime_error if it cannot be opened.
void attach_file(const std::filesystem::path& path);
void detach_file();

// While it lives, the file that this thread attaches gets the thread's messages alone. On stderr only
// warnings and errors appear, behind the label, and each text once.
class Labelled {
 public:
  explicit Labelled(std::string label);
  ~Labelled();
  Labelled(const Labelled&) = delete;
  Labelled& operator=(const Labelled&) = delete;
};

}  // namespace wd::logging
