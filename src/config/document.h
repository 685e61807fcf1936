// document.h: parses YAML text into a small tree that records places. YAML features that settings do not need
// are rejected.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/config/problems.h"

namespace wd::config {

constexpr std::size_t kMaxBytes = std::size_t{1} << 18;  // yaml-cpp may take 250 bytes of memory per byte
constexpr int kMaxDepth = 32;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string text;     // if this is a scalar
  bool quoted = false;  // a quoted scalar is always text
  Place place;
  std::vector<Node> items;     // if this is a list
  std::vector<Entry> entries;  // if this is a map, in the order of the file

  bool is_map() const { return kind == Kind::kMap; }
  const Node* find(std::string_view key) const;  // null if it is no map
  Node* find(std::string_view key);
  // Returns what is at a path like trainer.num_envs, or null.
  const Node* at(std::string_view path) const;
  Node* at(std::string_view path) { return const_cast<Node*>(std::as_const(*this).at(path)); }
};

struct Node::Entry {
  std::string key;
  Place key_place;
  Node value;
};

// Returns the kind for messages: "text", "a list", "a section", "nothing".
std::string kind_name(const Node& node);

// Returns the value as written in the file, on one line and shortened, for messages.
std::string shown(const Node& node);

// Returns the value as YAML on one line.
std::string yaml_of(const Node& node);

// Parses one document. Rejects the following, adding a problem with its place: text larger than kMaxBytes,
// bytes that are not UTF-8 or are control characters, aliases, anchors, tags, merge keys, duplicate keys,
// keys that are not words, a second document, more than kMaxDepth levels. Empty text gives a null node.
// Returns false if a problem was added.
bool parse_document(std::string_view text, const std::string& source, Problems& problems, Node& out);

// Reads and parses a file. Its top level must be a map or empty.
bool parse_file(const std::string& path, Problems& problems, Node& out, bool regular = false);
// The same of text that was read from there.
bool parse_text(std::string_view text, const std::string& path, Problems& problems, Node& out);

}  // namespace wd::config
