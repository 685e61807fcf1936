// reader.h: reads one section of a file into the struct that describes itself, and reports what does not fit.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/config/document.h"
#include "src/config/numbers.h"
#include "src/config/problems.h"
#include "wd/params.h"

namespace wd::config {

// Maps a path such as "trainer.num_envs" to the place of its current value. Missing if the default applies.
using Places = std::map<std::string, Place>;

// Visits a struct, or several structs of one section; then call finish(). A field with an invalid value keeps
// its previous value.
class Reader : public Fields {
 public:
  // `section` must be a map or null. `path` is, for example, "trainer" or "policy.tagger.model".
  Reader(const Node& section, std::string path, Problems& problems, Places& places)
      : section_(section), path_(std::move(path)), problems_(problems), places_(places) {}

  void operator()(const char* name, bool& value, const char* help) override;
  void operator()(const char* name, int& value, Range range, const char* help) override;
  void operator()(const char* name, std::int64_t& value, Range range, const char* help) override;
  void operator()(const char* name, float& value, Range range, const char* help) override;
  void operator()(const char* name, double& value, Range range, const char* help) override;
  void choice(const char* name, int& value, std::span<const char* const> words, const char* help) override;
  void operator()(const char* name, std::string& value, const char* help) override;
  void operator()(const char* name, JsonObject& value, const char* help) override;
  void operator()(const char* name, std::vector<int>& value, Range range, const char* help) override;
  void operator()(const char* name, Schedule& value, Range range, const char* help) override;
  void operator()(const char* name, std::vector<std::string>& value, const char* help) override;
  void operator()(const char* name, std::vector<ListedPlayer>& value, const char* help) override;
  void operator()(const char* name, std::optional<double>& value, Range range, const char* help) override;

  // Declares a key of the section that other code reads.
  void known(const std::string& name) { names_.push_back(name); }

  // Reports unknown keys. `elsewhere` contains full paths of fields of other sections, for suggestions.
  void finish(const std::vector<std::string>& elsewhere = {});

 private:
  const Node* take(const char* name);
  void problem(const Node& node, const std::string& name, const std::string& reason);
  void accept(const Node& node, const std::string& name);
  template <typename T>
  bool number(const Node& node, const std::string& name, Range range, T& value);
  bool text(const Node& node, const std::string& name, std::string& value);
  template <typename T>
  void scalar(const char* name, T& value, Range range);
  template <typename T, typename ReadItem>
  void list(const char* name, std::vector<T>& value, const std::string& reason, const ReadItem& read_item);
  bool points(const Node& node, const std::string& name, Range range, Schedule& schedule);

  const Node& section_;
  std::string path_;
  Problems& problems_;
  Places& places_;
  std::vector<std::string> names_;
};

}  // namespace wd::config
