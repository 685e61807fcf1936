// arguments.h: parses a command's options. Numbers remain text; the configuration parses and checks them.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/command.h"
#include "wd/params.h"

namespace CLI {
class App;
}

namespace wd::cli {

inline constexpr const char* kSourceHelp =
    "source file of the run's environment, if it has moved or changed since";
inline constexpr const char* kTrustHelp =
    "start an environment in Python that a run's configuration names, though you have not begun such a run";

// The options of one command. Add them, then call parse().
class Arguments {
 public:
  Arguments(const CommandLine& line, const std::string& command, const std::string& help);
  ~Arguments();

  // --name VALUE, at most once. `name` may contain a short form: "-e,--env". An empty value is an error.
  void option(const std::string& name, std::string& value, const std::string& type, const std::string& help);
  // --name NUMBER in the range; 10k and 1e6 count as integers. If it is not given, `value` is unchanged. A
  // double whose name ends in "seconds" is a duration: 90, 90s, 10m, 1.5h.
  template <typename Number>
  void number(const std::string& name, Number& value, Range range, const std::string& type,
              const std::string& help);
  // --name VALUE, any number of times.
  void repeatable(const std::string& name, std::vector<std::string>& values, const std::string& type,
                  const std::string& help);
  // --name [VALUE]. If it is given without a value, `value` is unchanged.
  void optional_value(const std::string& name, std::string& value, bool& given, const std::string& type,
                      const std::string& help);
  void flag(const std::string& name, bool& value, const std::string& help);
  // A word without dashes, or a list of them. `type` as for an option; empty: `name` says it.
  template <typename Words>
  void word(const std::string& name, Words& value, const std::string& help, const std::string& type = "");

  // Shows these options, which have been added, under a title of their own, or not at all if it is empty.
  // Titles are shown in the order of their first options.
  void group(const std::string& title, const std::vector<std::string>& options);
  // Text at the end of --help.
  void footer(std::string text) { footer_ = std::move(text); }
  // What an option that does not exist may have meant beside other options: `hint` gets its name without
  // dashes, its value, which may be empty, and whether names that are only near count. Returns
  // "; did you mean ...?" or nothing.
  using OptionHint = std::function<std::string(const std::string& name, const std::string& value, bool near)>;
  void on_unknown(OptionHint hint) { on_unknown_ = std::move(hint); }

  // Returns false if --help was given, after printing the help, or if the options are only to be described.
  // Throws UsageError that suggests the nearest option.
  bool parse();

  // Throws UsageError about a word that means nothing here. `why`: "it is no environment".
  [[noreturn]] void refuse(const std::string& word, const std::string& why = "") const;

 private:
  CommandInfo info() const;
  [[noreturn]] void refuse_option(const std::string& option) const;
  std::string setting_hint(const std::string& word) const;

  std::vector<std::string> arguments_;
  CommandInfo* describe_;
  std::string word_type_, footer_;
  OptionHint on_unknown_;
  std::deque<std::string> texts_;                // of numbers
  std::vector<std::function<void()>> converts_;  // from these texts
  std::unique_ptr<CLI::App> app_;
};

// Parses a whole number in the range, as above. Throws UsageError naming the option.
std::int64_t parse_integer(const std::string& option, const std::string& text, Range range);
// Returns the index of the word. Throws UsageError that suggests the nearest word.
std::size_t parse_word(const std::string& option, const std::string& text,
                       const std::vector<std::string>& words);

}  // namespace wd::cli
