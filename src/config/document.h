// document.h: YAML text as a small tree that remembers places; what the settings have no use for is refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/config/problems.h"

namespace wd::config {

constexpr std::size_t kMaxBytes = std::size_t{1} << 18;  // yaml-cpp may take 250 bytes for each
constexpr int kMaxDepth = 32;

struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  struct Entry;

  Kind kind = Kind::kNull;
  std::string text;     // of a scalar
  bool quoted = false;  // a quoted scalar is text, whatever it looks like
  Place place;
  std::vector<Node> items;     // of a list
  std::vector<Entry> entries;  // of a map, in the order of the file

  bool is_map() const { return kind == Kind::kMap; }
  const Node* find(std::string_view key) const;
  Node* find(std::string_view key);
};

struct Node::Entry {
  std::string key;
  Place key_place;
  Node value;
};

// A kind for messages: "text", "a list", "a section", "nothing".
std::string kind_name(const Node& node);

// The value on one line, as it stood in the file, shortened; for messages.
std::string shown(const Node& node);

// Parses one document. Refused, as a problem with its place: text larger than kMaxBytes, bytes that are not
// UTF-8 or are control characters, aliases, anchors, tags, merge keys, duplicate keys, keys that are not
// words, a second document, more than kMaxDepth levels. Empty text is a null node. False when a problem was
// added.
bool parse_document(std::string_view text, const std::string& source, Problems& problems, Node& out);

// Reads a file and parses it; its top level must be a map, or empty.
bool parse_file(const std::string& path, Problems& problems, Node& out);

}  // namespace wd::config
