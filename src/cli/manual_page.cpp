// manual_page.cpp: the manual page, in roff with the macros of man(7).
#include <algorithm>
#include <cctype>

#include "src/cli/description.h"
#include "src/cli/output.h"
#include "src/cli/programs.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

// Escapes what roff would interpret. A dash is a minus, as users must type it.
std::string plain(const std::string& text) {
  std::string safe = filled(filled(text, {{"\\", "\\e"}}),
                            {{"-", "\\-"}, {"'", "\\(aq"}, {"^", "\\(ha"}, {"~", "\\(ti"}, {"`", "\\(ga"}});
  if (safe.starts_with('.')) safe = "\\&" + safe;
  return safe;
}
std::string bold(const std::string& text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + plain(text) + "\\fR"; }

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string heading(const std::string& title) { return ".SH " + plain(upper(title)) + "\n"; }
std::string item(const std::string& term, const std::string& text) {
  return ".TP\n" + term + "\n" + text + "\n";
}

std::string option_item(const OptionInfo& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  std::string term = join(names, ", ");
  const std::string value = italic(option.type);
  if (!option.type.empty())
    term += term.empty() ? value : option.value_optional ? " [" + value + "]" : " " + value;
  return item(term, plain(option.help));
}

std::string setting_items(const std::vector<FieldInfo>& settings) {
  std::string text;
  for (const FieldInfo& field : settings) {
    const std::string range = field.range.empty() ? "" : ", " + field.range;
    text += item(concat(bold(field.name), " (", plain(field.type + range), ")"),
                 concat(plain(field.help), "; default: ", plain(field.value)));
  }
  return text;
}

std::string command_sections(const Description& description) {
  std::string text;
  for (const CommandInfo& command : description.commands) {
    text += heading(description.program + " " + command.name) + plain(command.description) + "\n";
    for (const OptionInfo& option : command.options) text += option_item(option);
  }
  return text;
}

std::string settings_sections(const Description& description) {
  std::string text = heading("settings") +
                     plain("These are the keys of --set and of YAML files. Defaults are those of " +
                           description.environments.front().name + " if environments differ.") +
                     "\n" + setting_items(description.settings);
  for (const EnvironmentDescription& one : description.environments)
    text += heading("settings of " + one.name) + setting_items(one.settings);
  return text;
}

}  // namespace

std::string manual_page(const Description& description) {
  const std::string& program = description.program;
  std::string text =
      concat(".TH ", plain(upper(program)), " 1 \"\" \"", plain(program + " " WD_VERSION), "\" \"\"\n");
  text += heading("name") + plain(program) + " \\- train multi\\-agent policies by reinforcement learning\n";
  text += heading("synopsis") + bold(program) + " [" + italic("COMMAND") + "] [" + italic("OPTIONS") + "]\n";
  text += heading("commands");
  for (const CommandInfo& command : description.commands)
    text += item(bold(command.name), plain(command.summary));
  for (const PythonTool& tool : kPythonTools) text += item(bold(tool.command), plain(tool.summary));
  for (const OptionInfo& option : program_options()) text += option_item(option);
  text += command_sections(description);
  if (!description.environments.empty()) text += settings_sections(description);
  text += heading("exit status");
  text += item("0", "success") + item("1", "a failure, damaged files included") +
          item("2", "an error in the input; the message names the place, the reason and the remedy") +
          item("124", "a worker hung") +
          item("128 + " + italic("n"), "signal " + italic("n") + " ended the process");
  return text;
}

}  // namespace wd::cli
