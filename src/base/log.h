// log.h: messages for people, on stderr and, once a run has a folder, in its log.txt.
// The library throws, the program logs: only the command line, the trainer and the run's files call this.
#pragma once

#include <filesystem>
#include <string_view>

namespace wd::logging {

void info(std::string_view message);
void warn(std::string_view message);
void error(std::string_view message);

// Into log.txt alone, where there is one: what people have been told in another way.
void to_file(std::string_view message);

// From here on stderr shows warnings and errors alone; log.txt still gets everything.
void quiet();

// Messages also go to this file (appended) until detach_file; the first file gets those from before it too.
// Throws std::runtime_error when it cannot be opened.
void attach_file(const std::filesystem::path& path);
void detach_file();

}  // namespace wd::logging
