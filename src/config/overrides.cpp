// overrides.cpp: --set and the options that are shorthands for it.
#include "src/base/utf8.h"
#include "src/config/layers.h"

namespace wd {
namespace config {
namespace {

// Returns the value of a key of a map. Adds the key if it is missing.
Node& entry_of(Node& map, std::string_view key, const Place& place) {
  if (!map.is_map()) {
    map = Node{.kind = Node::Kind::kMap, .place = place};
  }
  if (Node* found = map.find(key)) return *found;
  map.entries.push_back({std::string(key), place, Node{}});
  return map.entries.back().value;
}

bool is_path(std::string_view path) {
  return !path.empty() && path.front() != '.' && path.back() != '.' &&
         path.find("..") == std::string_view::npos;
}

}  // namespace

void set_place(Node& node, const Place& place) {
  node.place = place;
  for (Node& item : node.items) set_place(item, place);
  for (Node::Entry& entry : node.entries) {
    entry.key_place = place;
    set_place(entry.value, place);
  }
}

void put(Node& tree, std::string_view path, Node value) {
  const Place place = value.place;
  Node* at = &tree;
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    at = &entry_of(*at, path.substr(0, dot), place);
    path.remove_prefix(dot + 1);
  }
  entry_of(*at, path, place) = std::move(value);
}

void fill(Node& tree, const Node& defaults) {
  if (tree.kind == Node::Kind::kNull) tree.kind = Node::Kind::kMap;
  if (!tree.is_map()) return;
  for (const Node::Entry& entry : defaults.entries) {
    Node* const own = tree.find(entry.key);
    if (own == nullptr) {
      tree.entries.push_back(entry);
    } else if (entry.value.is_map()) {
      fill(*own, entry.value);
    }
  }
}

Layer override_layer(const std::vector<Override>& overrides, Problems& problems) {
  Layer layer{.tree = {.kind = Node::Kind::kMap}};
  for (const Override& one : overrides) {
    const Place place{one.option, 0, 0};
    if (!is_path(one.path) || one.path.size() > 300) {
      problems.add(place, printable(one.path), "must be section.key=value");
      continue;
    }
    Node value;
    Problems here;
    if (!parse_document(one.text, "", here, value)) {
      problems.add(place, one.path + " = " + printable(one.text),
                   is_utf8(one.text) ? "not a YAML value" : "must be UTF-8, paths too: give it another name");
      continue;
    }
    set_place(value, place);  // options have no line numbers
    if (one.path == "policy") layer.names_policies = true;
    put(layer.tree, one.path, std::move(value));
  }
  return layer;
}

}  // namespace config

Override parse_override(std::string_view argument) {
  const std::size_t equals = argument.find('=');
  const bool good = equals != std::string_view::npos && config::is_path(argument.substr(0, equals));
  if (!good) throw ConfigError({"--set " + config::printable(argument) + ": must be section.key=value"});
  return {std::string(argument.substr(0, equals)), std::string(argument.substr(equals + 1))};
}

}  // namespace wd
