// arguments.cpp: the only file that uses CLI11.
#include "src/cli/arguments.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "src/base/join.h"
#include "src/base/program_name.h"
#include "src/base/suggest.h"
#include "src/cli/output.h"
#include "src/config/duration.h"
#include "wd/error.h"

namespace wd::cli {

using config::kDurationType, config::takes_duration;

namespace {

// Returns the name of each option that help shows, as the user types it. `numbers`: only of those that take a
// number.
std::vector<std::string> option_names(const CLI::App& app, bool numbers = false) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    const bool number = type == "int" || type == "INT" || type == "number" || type == "NUMBER" ||
                        type == kDurationType || type.starts_with("number |");
    if (option->get_group().empty() || (numbers && !number)) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool is_number(const std::string& text) {
  double value = 0.0;
  return config::parse_duration(text, value) == config::Parsed::kGood;
}

// Opening brackets less closing ones.
std::int64_t depth_of(const std::string& text) {
  const auto count = [&](char c) { return std::ranges::count(text, c); };
  return count('{') + count('[') - count('}') - count(']');
}

// A number, or a duration if the option takes one. Throws UsageError naming the option.
double parse_real(const std::string& option, const std::string& text, Range range) {
  const bool duration = takes_duration(option);
  double value = 0.0;
  const config::Parsed parsed =
      duration ? config::parse_duration(text, value) : config::parse_double(text, value);
  if (parsed == config::Parsed::kGood && range.contains(value)) return value;
  throw UsageError(
      concat(option, " ", text, ": ",
             duration ? config::demand_duration(parsed, range) : config::demand(parsed, false, range)));
}

}  // namespace

Arguments::Arguments(const CommandLine& line, const std::string& command, const std::string& help)
    : arguments_(line.arguments),
      describe_(line.describe),
      app_(std::make_unique<CLI::App>(help, line.program + (command.empty() ? "" : " ") + command)) {
  app_->set_help_flag("-h,--help", "show this help");
  app_->get_formatter()->column_width(34);
  app_->allow_extras();
}

Arguments::~Arguments() = default;

void Arguments::option(const std::string& name, std::string& value, const std::string& type,
                       const std::string& help) {
  const auto given = [](const std::string& text) {
    return std::string(text.empty() ? "must not be empty" : "");
  };
  app_->add_option(name, value, help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->check(given);
}

template <typename Number>
void Arguments::number(const std::string& name, Number& value, Range range, const std::string& type,
                       const std::string& help) {
  std::string& text = texts_.emplace_back();
  option(name, text, std::is_floating_point_v<Number> && takes_duration(name) ? kDurationType : type, help);
  const std::string given = name.substr(name.find("--"));
  converts_.emplace_back([&text, &value, given, range] {
    if (text.empty()) return;
    if constexpr (std::is_integral_v<Number>) {
      value = static_cast<Number>(parse_integer(given, text, range));
    } else {
      value = parse_real(given, text, range);
    }
  });
}

template void Arguments::number(const std::string&, int&, Range, const std::string&, const std::string&);
template void Arguments::number(const std::string&, double&, Range, const std::string&, const std::string&);
template void Arguments::number(const std::string&, std::int64_t&, Range, const std::string&,
                                const std::string&);
template void Arguments::number(const std::string&, std::uint64_t&, Range, const std::string&,
                                const std::string&);

void Arguments::repeatable(const std::string& name, std::vector<std::string>& values, const std::string& type,
                           const std::string& help) {
  app_->add_option(name, values, help)->option_text(type)->allow_extra_args(false);
}

void Arguments::optional_value(const std::string& name, std::string& value, bool& given,
                               const std::string& type, const std::string& help) {
  const auto take = [&value, &given](const CLI::results_t& texts) {
    given = true;
    if (!texts.empty() && !texts.front().empty() && texts.front() != "{}") value = texts.front();
    return true;
  };
  app_->add_option(name, take, help)->type_name(type)->expected(0, 1);
}

void Arguments::group(const std::string& title, const std::vector<std::string>& options) {
  for (const std::string& name : options) app_->get_option(name)->group(title);
}

void Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}

template <typename Words>
void Arguments::word(const std::string& name, Words& value, const std::string& help,
                     const std::string& type) {
  app_->add_option(name, value, help)->type_name("");
  word_type_ = type.empty() ? name : type;
}

template void Arguments::word(const std::string&, std::string&, const std::string&, const std::string&);
template void Arguments::word(const std::string&, std::vector<std::string>&, const std::string&,
                              const std::string&);

CommandInfo Arguments::info() const {
  CommandInfo info{.description = app_->get_description()};
  for (const CLI::Option* option : app_->get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    OptionInfo one{.help = option->get_description()};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    one.repeatable = option->get_items_expected_max() > 1;
    if (option->get_positional()) {
      one.type = word_type_;
    } else if (option->get_items_expected_max() > 0) {
      one.type = one.repeatable ? option->get_option_text() : option->get_type_name();
      one.value_optional = option->get_items_expected_min() == 0;
    }
    info.options.push_back(std::move(one));
  }
  return info;
}

// Returns a hint for the second word of "-s a.b=1 c.d=2" or "-s a={b: 1}".
std::string Arguments::setting_hint(const std::string& word) const {
  if (!contains(option_names(*app_), "--set")) return "";
  const std::size_t count = arguments_.size();
  for (std::size_t k = 0; k < count; ++k) {
    const bool assigned = arguments_[k].starts_with("--set=");
    if (!assigned && arguments_[k] != "--set" && arguments_[k] != "-s") continue;
    std::string value = assigned ? arguments_[k].substr(arguments_[k].find('=') + 1) : "";
    if (!assigned && ++k < count) value = arguments_[k];
    if (depth_of(value) <= 0) continue;
    while (depth_of(value) > 0 && k + 1 < count) value += " " + arguments_[++k];
    return ": the shell cut the value of --set at its blanks: quote it: --set " + shell_word(value);
  }
  return word.find('=') != std::string::npos ? ": each setting takes a --set of its own" : "";
}

void Arguments::refuse(const std::string& word, const std::string& why) const {
  std::string hint = setting_hint(word);
  if (hint.empty() && !why.empty()) hint = ": " + why;
  throw UsageError("unexpected argument '" + word + "'" + hint + "; see " + app_->get_name() + " --help");
}

void Arguments::refuse_option(const std::string& option) const {
  const std::size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  std::string value = equals == std::string::npos ? "" : option.substr(equals + 1);
  const auto next = std::ranges::find(arguments_, option) - arguments_.begin() + 1;
  if (value.empty() && next < std::ssize(arguments_) &&
      !arguments_[static_cast<std::size_t>(next)].starts_with("--"))
    value = arguments_[static_cast<std::size_t>(next)];
  std::string key = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  std::ranges::replace(key, '-', '_');
  const std::string problem = "unknown option " + name;
  if (std::string hint = on_unknown_ ? on_unknown_(key, value, false) : ""; !hint.empty())
    throw UsageError(problem + hint);
  const std::vector<std::string> names = option_names(*app_), numeric = option_names(*app_, true);
  std::string near = nearest_name(name, names);
  // Of options that are equally near, one that takes a number if a number follows.
  const std::string number = is_number(value) ? nearest_name(name, numeric) : "";
  if (!number.empty() && edit_distance(name, number) <= edit_distance(name, near)) near = number;
  for (const auto& [unit, letter] : {std::pair("_minutes", "m"), std::pair("_hours", "h")}) {
    const std::string seconds = "--" + key.substr(0, key.rfind('_')) + "_seconds";
    if (key.ends_with(unit) && contains(names, seconds))
      throw UsageError(concat(problem, "; did you mean ", seconds, ' ', value, letter, '?'));
  }
  if (!near.empty()) throw UsageError(problem + "; did you mean \"" + near + "\"?");
  std::string hint = on_unknown_ ? on_unknown_(key, value, true) : "";
  throw UsageError(problem + (hint.empty() ? "; see " + app_->get_name() + " --help" : hint));
}

bool Arguments::parse() {
  if (describe_ != nullptr) {
    *describe_ = info();
    return false;
  }
  std::vector<std::string> reversed(arguments_.rbegin(), arguments_.rend());
  try {
    app_->parse(reversed);
  } catch (const CLI::CallForHelp&) {
    print(filled(app_->help(), {{"\n\n\n", "\n\n"}}) + footer_);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see " + app_->get_name() + " --help");
  }
  for (const std::string& extra : app_->remaining()) {
    if (extra.size() > 1 && extra.front() == '-') refuse_option(extra);
    refuse(extra);
  }
  for (const CLI::Option* option : app_->get_options()) {
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      throw UsageError(concat(option->get_name(), " is given ", option->count(), " times; give it once"));
  }
  for (const auto& convert : converts_) convert();
  return true;
}

std::int64_t parse_integer(const std::string& option, const std::string& text, Range range) {
  std::int64_t value = 0;
  const config::Parsed parsed = config::parse_int(text, value);
  if (parsed != config::Parsed::kGood || !range.contains_whole(value)) {
    throw UsageError(option + " " + text + ": " + config::demand(parsed, true, range));
  }
  return value;
}

std::size_t parse_word(const std::string& option, const std::string& text,
                       const std::vector<std::string>& words) {
  const auto found = std::ranges::find(words, text);
  if (found == words.end())
    throw UsageError(option + " " + text + ": must be one of " + join(words) + did_you_mean(text, words));
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace wd::cli
