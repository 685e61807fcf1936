// table.cpp: one line per setting.
#include "src/bench/table.h"

#include <algorithm>
#include <csignal>

#include "src/base/host_memory.h"
#include "src/base/json.h"
#include "src/report/format.h"
#include "src/report/table.h"
#include "wd/error.h"

namespace wd::bench {
namespace {

// Returns the line with the error message; lines after it, if any, say where the error came from. Without an
// error message, returns the last line.
std::string cause(std::string_view text) {
  constexpr std::string_view kError = "error: ";
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t error = text.rfind(kError), last = text.rfind('\n');
  text.remove_prefix(error != text.npos ? error + kError.size() : last != text.npos ? last + 1 : 0);
  return std::string(text.substr(0, text.find('\n')));
}

std::string number(const Json& json, const char* key) {
  return json.contains(key) ? report::format_number("%.3g", json[key].get<double>()) : "-";
}

// Names and widths of the columns after the settings.
struct Column {
  const char* name;
  int width;
};
constexpr std::array<Column, 7> kColumns = {
    {{"env/s", 9}, {"least", 9}, {"most", 9}, {"agent/s", 9}, {"GB/s", 8}, {"TFLOP/s", 9}, {"memory", 10}}};

}  // namespace

void Row::take(const Ended& ended, bool killed_for_memory) {
  result = ended.exit_code == 0 ? parse_json<Json>(ended.out) : Json();
  if (result.is_object()) {
    status = "ok";
    return;
  }
  result = Json();
  const bool killed = ended.exit_code == 128 + SIGKILL && killed_for_memory;
  status = killed || ended.exit_code == kOutOfMemoryCode ? "out of memory" : "failed";
  detail = killed ? "ended by the out-of-memory killer" : cause(ended.err);
}

Table::Table(const std::vector<Sweep>& sweeps) {
  for (const Sweep& sweep : sweeps) {
    keys_.push_back(sweep.key);
    std::size_t width = sweep.key.size();
    for (const std::string& value : sweep.values) width = std::max(width, value.size());
    widths_.push_back(static_cast<int>(width));
  }
}

std::string Table::settings(const std::vector<std::string>& values) const {
  std::string text;
  for (std::size_t k = 0; k < values.size(); ++k) text += report::padded(values[k], widths_[k]) + "  ";
  return text;
}

std::string Table::heading() const {
  std::string text = settings(keys_);
  for (const Column& column : kColumns) text += report::padded(column.name, column.width);
  return text + "\n";
}

std::string Table::line(const Row& row) const {
  std::string text = settings(row.values);
  if (!row.measured()) return text + row.status + (row.detail.empty() ? "" : ": " + row.detail) + "\n";
  const Json& json = row.result;
  const auto count = [&](const char* key) { return report::format_count(json[key].get<double>()); };
  const Json& achieved = json["achieved"]["all"];
  const std::array<std::string, kColumns.size()> cells = {
      count("env_steps_per_s"),
      count("env_steps_per_s_least"),
      count("env_steps_per_s_most"),
      count("agent_steps_per_s"),
      number(achieved, "GB_per_s"),
      number(achieved, "TFLOP_per_s"),
      report::format_bytes(json["peak_memory_bytes"].get<std::uint64_t>())};
  for (std::size_t k = 0; k < cells.size(); ++k) text += report::padded(cells[k], kColumns[k].width);
  return text + "\n";
}

Json sweep_json(const std::vector<Sweep>& sweeps, const std::vector<Row>& rows) {
  Json json{{"sweep", Json::object()}, {"rows", Json::array()}};
  for (const Sweep& sweep : sweeps) json["sweep"][sweep.key] = sweep.values;
  for (const Row& row : rows) {
    Json settings = Json::object();
    for (std::size_t k = 0; k < sweeps.size(); ++k) settings[sweeps[k].key] = row.values[k];
    Json one{{"settings", settings}, {"status", row.status}};
    if (!row.detail.empty()) one["detail"] = row.detail;
    if (row.measured()) one["result"] = row.result;
    json["rows"].push_back(std::move(one));
  }
  return json;
}

}  // namespace wd::bench
