// list.cpp: lists the fields of a section as text, for printing, help and documentation.
#include "src/base/join.h"
#include "src/config/duration.h"
#include "wd/config.h"

namespace wd {
namespace {

using config::format;

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

template <typename T, typename ToText>
std::string bracketed(const std::vector<T>& values, ToText to_text) {
  std::vector<std::string> items;
  for (const T& value : values) items.push_back(to_text(value));
  return "[" + join(items) + "]";
}

std::string schedule_text(const Schedule& schedule) {
  if (schedule.points.size() == 1 && schedule.points[0].step == 0.0) return format(schedule.points[0].value);
  return bracketed(schedule.points, [](const Schedule::Point& point) {
    return "[" + format(point.step) + ", " + format(point.value) + "]";
  });
}

class Lister : public Fields {
 public:
  std::vector<FieldInfo> take() { return std::move(fields_); }

  void operator()(const char* name, bool& value, const char* help) override {
    fields_.push_back({name, "bool", value ? "true" : "false", "", help});
  }
  void operator()(const char* name, int& value, Range range, const char* help) override {
    fields_.push_back({name, "int", std::to_string(value), format(range), help});
  }
  void operator()(const char* name, std::int64_t& value, Range range, const char* help) override {
    fields_.push_back({name, "int", std::to_string(value), format(range), help});
  }
  void operator()(const char* name, float& value, Range range, const char* help) override {
    fields_.push_back({name, "number", format(value), format(range), help});
  }
  void operator()(const char* name, double& value, Range range, const char* help) override {
    const char* const type = config::takes_duration(name) ? config::kDurationType : "number";
    fields_.push_back({name, type, format(value), format(range), help});
  }
  void choice(const char* name, int& value, std::span<const char* const> words, const char* help) override {
    const std::vector<std::string> all(words.begin(), words.end());
    fields_.push_back({name, join(all, " | "), all.at(static_cast<std::size_t>(value)), "", help});
  }
  void operator()(const char* name, std::string& value, const char* help) override {
    fields_.push_back({name, "text", quote(value), "", help});
  }
  void operator()(const char* name, std::vector<int>& value, Range range, const char* help) override {
    const std::string text = bracketed(value, [](int item) { return std::to_string(item); });
    fields_.push_back({name, "list of int", text, format(range), help});
  }
  void operator()(const char* name, Schedule& value, Range range, const char* help) override {
    fields_.push_back({name, "schedule", schedule_text(value), format(range), help});
  }
  void operator()(const char* name, std::vector<std::string>& value, const char* help) override {
    fields_.push_back({name, "list of text", bracketed(value, quote), "", help});
  }
  void operator()(const char* name, std::vector<ListedPlayer>& value, const char* help) override {
    const auto shown = [](ListedPlayer listed) {
      if (listed.player.kind == PlayerSpec::kPool) return listed.text();
      listed.player = {PlayerSpec::kRun, quote(listed.player.text())};
      return listed.text();
    };
    fields_.push_back({name, "list of players", bracketed(value, shown), "", help});
  }
  void operator()(const char* name, std::optional<double>& value, Range range, const char* help) override {
    fields_.push_back({name, "number | none", value ? format(*value) : "none", format(range), help});
  }

 private:
  std::vector<FieldInfo> fields_;
};

}  // namespace

std::vector<FieldInfo> list_fields(const Describe& describe) {
  Lister lister;
  describe(lister);
  return lister.take();
}

}  // namespace wd
