// arguments.h: reads a command's options. Numbers stay text: the configuration reads and checks them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/command.h"
#include "wd/params.h"

namespace CLI {
class App;
}

namespace wd::cli {

// One command's options. Add them, then parse().
class Arguments {
 public:
  Arguments(const CommandLine& line, const std::string& command, const std::string& help);
  ~Arguments();

  // --name VALUE, at most once. `name` may hold a short form: "-e,--env". An empty value is refused.
  void option(const std::string& name, std::string& value, const std::string& type, const std::string& help);
  // --name VALUE, any number of times.
  void repeatable(const std::string& name, std::vector<std::string>& values, const std::string& type,
                  const std::string& help);
  // --name [VALUE]: given without a value, `value` stays as it is.
  void optional_value(const std::string& name, std::string& value, bool& given, const std::string& type,
                      const std::string& help);
  // --name VALUE that --help does not show.
  void hidden(const std::string& name, std::string& value);
  void flag(const std::string& name, bool& value, const std::string& help);
  // A word without dashes, at most one.
  void word(const std::string& name, std::string& value, const std::string& help);
  // A word that nobody asked for is likely meant for this option.
  void words_belong_to(const std::string& name) { likely_ = name; }

  // False where --help was asked for, and shown. Throws UsageError, with the nearest option.
  bool parse();

 private:
  std::vector<std::string> arguments_;
  std::string likely_;
  std::unique_ptr<CLI::App> app_;
};

// A number in the range; 10k and 1e6 are whole. Throws UsageError naming the option.
std::int64_t parse_integer(const std::string& option, const std::string& text, Range range);
double parse_number(const std::string& option, const std::string& text, Range range);
// Which of the words it is. Throws UsageError with the nearest.
std::size_t parse_word(const std::string& option, const std::string& text,
                       const std::vector<std::string>& words);

}  // namespace wd::cli
