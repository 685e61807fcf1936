// reader.cpp: parses text into values, one kind of field after another.
#include "src/config/reader.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "src/base/join.h"
#include "src/base/json.h"
#include "src/base/suggest.h"
#include "src/config/duration.h"
#include "src/config/synonyms.h"
#include "wd/config.h"

namespace wd::config {
namespace {

constexpr std::size_t kMaxTextValue = 4096;  // maximum length of a path on Linux
constexpr std::size_t kMaxItems = 1000;      // points of a schedule, layers, roles

// A word without quotes as JSON: what YAML, Python, or a number elsewhere in the file takes it for, and
// otherwise text.
std::string json_of_word(const std::string& word) {
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"True", "true"},         {"TRUE", "true"},           {"False", "false"},     {"FALSE", "false"},
      {"None", "null"},         {"Null", "null"},           {"NULL", "null"},       {"~", "null"},
      {".inf", "Infinity"},     {"+.inf", "Infinity"},      {"-.inf", "-Infinity"}, {".nan", "NaN"},
      {"Infinity", "Infinity"}, {"-Infinity", "-Infinity"}, {"NaN", "NaN"}};
  for (const auto& [written, json] : kWords)
    if (word == written) return json;
  if (const nlohmann::json json = parse_json(word); json.is_primitive() && !json.is_string()) return word;
  std::int64_t whole = 0;
  double number = 0.0;
  if (word.find('.') == std::string::npos && parse_int(word, whole) == Parsed::kGood)
    return std::to_string(whole);
  if (parse_double(word, number) == Parsed::kGood) return dump(nlohmann::json(number));
  return dump(nlohmann::json(word));
}

// A node as JSON with Python's words for numbers that are not finite.
std::string json_of(const Node& node) {
  if (node.kind == Node::Kind::kNull) return "null";
  if (node.kind == Node::Kind::kScalar)
    return node.quoted ? dump(nlohmann::json(node.text)) : json_of_word(node.text);
  std::string inner;
  const auto add = [&](const std::string& part) { inner += (inner.empty() ? "" : ", ") + part; };
  for (const Node& item : node.items) add(json_of(item));
  for (const Node::Entry& entry : node.entries)
    add(dump(nlohmann::json(entry.key)) + ": " + json_of(entry.value));
  return node.is_map() ? "{" + inner + "}" : "[" + inner + "]";
}

template <typename T>
Parsed parse(std::string_view text, T& value) {
  if constexpr (std::is_same_v<T, float>) return parse_float(text, value);
  if constexpr (std::is_same_v<T, double>) return parse_double(text, value);
  if constexpr (std::is_same_v<T, std::int64_t>) return parse_int(text, value);
  if constexpr (std::is_same_v<T, int>) {
    std::int64_t wide = 0;
    const Parsed parsed = parse_int(text, wide);
    if (parsed != Parsed::kGood) return parsed;
    value = static_cast<int>(wide);
    return value == wide ? Parsed::kGood : Parsed::kTooLarge;
  }
}

// A float is compared as it was written: 0.1 is in [0, 0.1] although 0.1f is not, and 1e-60, which becomes 0,
// is not above 0.
template <typename T>
bool in_range(const std::string& text, const Range& range, T value) {
  if constexpr (std::is_integral_v<T>) return range.contains_whole(value);
  double written = static_cast<double>(value);
  if constexpr (std::is_same_v<T, float>) parse_double(text, written);
  return range.contains(written) && !(range.low_open && static_cast<double>(value) <= range.low);
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// Suggests the name that was probably meant, in this section or in another. This is slow, and there can be
// thousands of unknown keys, so callers limit its use.
std::string hint(const std::string& key, const std::vector<std::string>& names,
                 const std::vector<std::string>& elsewhere) {
  if (const std::string_view text = counted_otherwise(key, names); !text.empty()) return concat("; ", text);
  if (const std::string ours(our_name(key)); contains(names, ours)) return "; did you mean \"" + ours + "\"?";
  if (nearest_name(key, names).empty()) {
    for (const std::string& path : elsewhere) {
      if (path.ends_with("." + key)) return "; did you mean \"" + path + "\"?";
    }
  }
  return suggestion(key, names);
}

}  // namespace

const Node* Reader::take(const char* name) {
  names_.emplace_back(name);
  return section_.find(name);
}

void Reader::problem(const Node& node, const std::string& name, const std::string& reason) {
  problems_.add(node.place, path_ + "." + name + " = " + shown(node), reason);
}

void Reader::accept(const Node& node, const std::string& name) { places_[path_ + "." + name] = node.place; }

template <typename T>
bool Reader::number(const Node& node, const std::string& name, Range range, T& value) {
  constexpr bool whole = std::is_integral_v<T>;
  T read = 0;
  const bool plain = node.kind == Node::Kind::kScalar && !node.quoted;
  const bool duration = std::is_same_v<T, double> && takes_duration(name);
  Parsed parsed = Parsed::kNoNumber;
  if constexpr (std::is_same_v<T, double>) {
    if (plain && duration) parsed = parse_duration(node.text, read);
  }
  if (plain && !duration) parsed = parse(node.text, read);
  if (parsed == Parsed::kGood && in_range(node.text, range, read)) {
    value = read;
    return true;
  }
  const std::string reason = duration ? demand_duration(parsed, range) : demand(parsed, whole, range);
  problem(node, name, reason + (node.quoted ? ", without quotes" : ""));
  return false;
}

template <typename T>
void Reader::scalar(const char* name, T& value, Range range) {
  const Node* node = take(name);
  if (node && number(*node, name, range, value)) accept(*node, name);
}

void Reader::operator()(const char* name, bool& value, const char*) {
  const Node* node = take(name);
  if (!node) return;
  const bool plain = node->kind == Node::Kind::kScalar && !node->quoted;
  const bool yes = plain && (node->text == "true" || node->text == "True" || node->text == "TRUE");
  const bool no = plain && (node->text == "false" || node->text == "False" || node->text == "FALSE");
  if (!yes && !no) return problem(*node, name, "must be true or false");
  value = yes;
  accept(*node, name);
}

void Reader::operator()(const char* name, int& value, Range range, const char*) {
  scalar(name, value, range);
}
void Reader::operator()(const char* name, std::int64_t& value, Range range, const char*) {
  scalar(name, value, range);
}
void Reader::operator()(const char* name, float& value, Range range, const char*) {
  scalar(name, value, range);
}
void Reader::operator()(const char* name, double& value, Range range, const char*) {
  scalar(name, value, range);
}

void Reader::choice(const char* name, int& value, std::span<const char* const> words, const char*) {
  const Node* node = take(name);
  if (!node) return;
  const std::vector<std::string> list(words.begin(), words.end());
  const auto found = std::find(list.begin(), list.end(), node->text);
  if (node->kind != Node::Kind::kScalar || found == list.end()) {
    // Short words differ by a letter and mean different things: gpu and cpu, fp16 and bf16.
    constexpr std::size_t kShort = 4;
    std::string near(missing_algorithm(node->text));
    if (near.empty() && node->text.size() > kShort) near = did_you_mean(node->text, list);
    return problem(*node, name, (list.size() == 1 ? "must be " : "must be one of ") + join(list) + near);
  }
  value = static_cast<int>(found - list.begin());
  accept(*node, name);
}

bool Reader::text(const Node& node, const std::string& name, std::string& value) {
  std::string reason;
  if (node.kind != Node::Kind::kScalar) reason = "must be text (\"\" for none)";
  if (node.text.size() > kMaxTextValue) reason = "longer than " + std::to_string(kMaxTextValue) + " bytes";
  if (has_control(node.text)) reason = "holds a control character";
  if (!reason.empty()) problem(node, name, reason);
  if (reason.empty()) value = node.text;
  return reason.empty();
}

void Reader::operator()(const char* name, std::string& value, const char*) {
  const Node* node = take(name);
  if (node && text(*node, name, value)) accept(*node, name);
}

void Reader::operator()(const char* name, JsonObject& value, const char*) {
  const Node* node = take(name);
  if (!node) return;
  if (node->is_map()) {
    value.text = json_of(*node);
    return accept(*node, name);
  }
  std::string text;
  if (!this->text(*node, name, text)) return;
  if (!text.empty() && !parse_json(text).is_object()) {
    Node section;  // JSON with Infinity or NaN is YAML
    Problems faults;
    if (!parse_text(text, name, faults, section) || !section.is_map())
      return problem(*node, name,
                     "must be a section, or the text of a JSON object like {\"continuous\": true}");
    text = json_of(section);
  }
  value.text = std::move(text);
  accept(*node, name);
}

template <typename T, typename ReadItem>
void Reader::list(const char* name, std::vector<T>& value, const std::string& reason,
                  const ReadItem& read_item) {
  const Node* node = take(name);
  if (!node) return;
  if (node->kind != Node::Kind::kList || node->items.size() > kMaxItems) return problem(*node, name, reason);
  std::vector<T> read(node->items.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!read_item(node->items[i], read[i])) return;
  }
  value = std::move(read);
  accept(*node, name);
}

void Reader::operator()(const char* name, std::vector<std::string>& value, const char*) {
  list(name, value, "must be a list of words, [a, b]",
       [&](const Node& item, std::string& word) { return text(item, name, word); });
}

void Reader::operator()(const char* name, std::vector<ListedPlayer>& value, const char*) {
  list(name, value, "must be a list of players, [self, random, scripted, runs/a]",
       [&](const Node& item, ListedPlayer& read) {
         std::string player;
         const std::size_t before = problems_.count();
         if (item.is_map()) {
           Reader entry(item, path_ + "." + name, problems_, places_);
           for (const char* const key : {"player", "run"}) entry(key, player, "");
           if (const Node* const pool = entry.take("pool"); pool != nullptr && pool->is_map()) {
             Reader settings(*pool, path_ + "." + name + ".pool", problems_, places_);
             read.pool.describe(settings);
             settings.finish();
             if (!player.empty()) problem(*pool, name, "names a player and a pool: give an entry to each");
             player = "pool";
           } else if (pool != nullptr) {
             problem(*pool, name, "a pool has settings, as {pool: {size: 12, every: 500000}}");
           }
           entry("share", read.share, {0.0, 1.0, true}, "");
           entry.finish();
         } else {
           text(item, name, player);
         }
         if (player.empty() && problems_.count() == before)
           problem(item, name, "must name a player, as {run: runs/a, share: 0.2}");
         read.player = PlayerSpec::of(player);
         return problems_.count() == before;
       });
}

void Reader::operator()(const char* name, std::vector<int>& value, Range range, const char*) {
  list(name, value, "must be a list of whole numbers in " + format(range) + ", as [64, 64]",
       [&](const Node& item, int& read) { return number(item, name, range, read); });
}

bool Reader::points(const Node& node, const std::string& name, Range range, Schedule& schedule) {
  const auto refuse = [&](const Node& at, const std::string& reason) {
    problem(at, name, reason);
    return false;
  };
  if (node.items.empty() || node.items.size() > kMaxItems)
    return refuse(node, concat("must hold 1 to ", kMaxItems, " points [step, value]"));
  for (const Node& item : node.items) {
    Schedule::Point point;
    if (!schedule.points.empty()) range.low_open = false;  // a schedule may end at the bound, as at 0
    if (item.kind != Node::Kind::kList || item.items.size() != 2)
      return refuse(item, "must be a number or points, [[step, value], ...]");
    if (!number(item.items[0], name, TrainerSettings::kSteps, point.step) ||
        !number(item.items[1], name, range, point.value))
      return false;
    if (!schedule.points.empty() && point.step < schedule.points.back().step)
      return refuse(item, "steps must not go down");
    schedule.points.push_back(point);
  }
  return true;
}

void Reader::operator()(const char* name, Schedule& value, Range range, const char*) {
  const Node* node = take(name);
  if (!node) return;
  Schedule read;
  double constant = 0.0;
  if (node->kind == Node::Kind::kList) {
    if (!points(*node, name, range, read)) return;
  } else if (node->is_map()) {
    return problem(*node, name, "must be a number or points, [[step, value], ...]");
  } else {
    if (!number(*node, name, range, constant)) return;
    read = Schedule(constant);
  }
  value = std::move(read);
  accept(*node, name);
}

void Reader::operator()(const char* name, std::optional<double>& value, Range range, const char*) {
  const Node* node = take(name);
  if (!node) return;
  const bool none = node->kind == Node::Kind::kScalar && node->text == "none";
  double read = 0.0;
  if (!none && !number(*node, name, range, read)) return;
  value = none ? std::nullopt : std::optional(read);
  accept(*node, name);
}

void Reader::finish(const std::vector<std::string>& elsewhere) {
  for (const Node::Entry& entry : section_.entries) {
    if (contains(names_, entry.key)) continue;
    const std::string near = problems_.full() ? "" : hint(entry.key, names_, elsewhere);
    problems_.add(entry.key_place, path_ + "." + printable(entry.key), "unknown key" + near);
  }
}

}  // namespace wd::config
