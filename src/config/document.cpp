// document.cpp: builds our tree from the events of yaml-cpp. Its nodes are not used, because they follow
// aliases, which can take unbounded time, and silently drop duplicate keys and later documents.
#include "src/config/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "src/base/files.h"
#include "src/base/utf8.h"

namespace wd::config {
namespace {

constexpr std::size_t kMaxNodes = 20'000;  // a node takes about 200 bytes
constexpr char kNoAlias[] = "aliases (*name) are not supported: write the value out";
// yaml-cpp decodes these escapes to single bytes, which are not UTF-8.
constexpr char kHalfLetter[] = "the escapes \\N and \\_ are not supported: write \\x85 or \\xa0";

// Stops the parser. Place and reason are added to Problems.
struct Refused {
  Place place;
  std::string reason;
};

// A list or map that is not closed yet.
struct Open {
  Node node;
  bool key_next = true;  // map: the next scalar is a key
  std::set<std::string> keys = {};
};

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(const std::string& source) : source_(source) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document; a file holds one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    if (key_expected()) refuse(mark, "a key must be a word");
    add(make(Node::Kind::kNull, mark));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, kNoAlias); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    check(mark, tag, anchor);
    if (!is_utf8(text)) refuse(mark, kHalfLetter);
    if (key_expected()) return key(mark, text);
    Node node = make(Node::Kind::kScalar, mark);
    node.text = text;
    node.quoted = tag == "!";
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  Place place(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string reason) const {
    throw Refused{place(mark), std::move(reason)};
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse(mark, "anchors (&name) are not supported: write the value out");
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, "tags are not supported: remove \"" + printable(tag) + "\"");
    }
    if (++nodes_ > kMaxNodes) refuse(mark, "more than " + std::to_string(kMaxNodes) + " values");
  }

  Node make(Node::Kind kind, const YAML::Mark& mark) const {
    Node node;
    node.kind = kind;
    node.place = place(mark);
    return node;
  }

  bool key_expected() const {
    return !stack_.empty() && stack_.back().node.is_map() && stack_.back().key_next;
  }

  void key(const YAML::Mark& mark, const std::string& text) {
    if (text == "<<") refuse(mark, "merge keys (<<) are not supported: write the values out");
    if (text.empty()) refuse(mark, "a key must be a word");
    Open& map = stack_.back();
    if (!map.keys.insert(text).second) refuse(mark, "duplicate key \"" + printable(text) + "\"");
    map.node.entries.push_back({text, place(mark), Node{}});
    map.key_next = false;
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    check(mark, tag, anchor);
    if (key_expected()) refuse(mark, "a key must be a word");
    if (stack_.size() >= kMaxDepth) refuse(mark, "more than " + std::to_string(kMaxDepth) + " levels deep");
    stack_.push_back({make(kind, mark)});
  }

  void close() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (!parent.node.is_map()) return parent.node.items.push_back(std::move(node));
    Node::Entry& entry = parent.node.entries.back();
    // yaml-cpp reports the place of what follows.
    if (node.kind == Node::Kind::kNull) node.place = entry.key_place;
    entry.value = std::move(node);
    parent.key_next = true;
  }

  std::string source_;
  Node root_;
  std::vector<Open> stack_;
  std::size_t nodes_ = 0;
  int documents_ = 0;
};

// yaml-cpp reports -1 for marks without a position.
Place exception_place(const std::string& source, const YAML::Mark& mark) {
  return mark.line < 0 ? Place{source, 1, 1} : Place{source, mark.line + 1, mark.column + 1};
}

// Returns the first tab that indents one of the lines 1 to `last`. YAML does not allow tabs as indentation,
// but the parser's message does not say so.
std::optional<Place> indenting_tab(const std::string& source, std::string_view text, int last) {
  for (int line = 1; line <= last && !text.empty(); ++line) {
    const std::size_t column = text.find_first_not_of(' '), end = text.find('\n');
    if (column != std::string_view::npos && text[column] == '\t')
      return Place{source, line, static_cast<int>(column) + 1};
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return {};
}

std::string list_text(const Node& node, int depth);

std::string one_line(const Node& node, int depth) {
  if (node.kind == Node::Kind::kNull) return "(empty)";
  if (node.is_map()) return "{...}";
  if (node.kind == Node::Kind::kList) return depth > 2 ? "[...]" : list_text(node, depth);
  return node.quoted ? '"' + node.text + '"' : node.text;
}

std::string list_text(const Node& node, int depth) {
  std::string text = "[";
  for (std::size_t i = 0; i < node.items.size() && text.size() < 100; ++i) {
    text += (i ? ", " : "") + one_line(node.items[i], depth + 1);
  }
  return text + "]";
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

const Node* Node::at(std::string_view path) const {
  const std::size_t dot = path.find('.');
  const Node* const next = find(path.substr(0, dot));
  return next == nullptr || dot == std::string_view::npos ? next : next->at(path.substr(dot + 1));
}

std::string kind_name(const Node& node) {
  constexpr const char* kNames[] = {"nothing", "a word", "a list", "a section"};
  return node.quoted ? "text" : kNames[static_cast<std::size_t>(node.kind)];
}

std::string yaml_of(const Node& node) {
  if (node.kind == Node::Kind::kNull) return "null";
  std::vector<std::string> items;
  for (const Node& item : node.items) items.push_back(yaml_of(item));
  for (const auto& [key, place, value] : node.entries) items.push_back(concat(key, ": ", yaml_of(value)));
  if (node.kind == Node::Kind::kList) return concat('[', join(items), ']');
  if (node.is_map()) return concat('{', join(items), '}');
  if (!node.quoted) return node.text;
  std::string text = "'";
  for (const char c : node.text) text += c == '\'' ? "''" : std::string(1, c);
  return text + '\'';
}

std::string shown(const Node& node) { return printable(one_line(node, 0)); }

bool parse_document(std::string_view text, const std::string& source, Problems& problems, Node& out) {
  const std::size_t before = problems.count();
  if (text.size() > kMaxBytes) {
    problems.add({source, 1, 1}, "", "larger than " + std::to_string(kMaxBytes) + " bytes");
    return false;
  }
  if (const auto bad = first_bad_byte(text)) {
    problems.add({source, bad->line, bad->column}, "", bad->reason);
    return false;
  }
  std::istringstream stream{std::string(text)};
  Builder builder(source);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    out = builder.take();
  } catch (const Refused& refused) {
    problems.add(refused.place, "", refused.reason);
  } catch (const YAML::Exception& error) {
    const bool alias = error.msg == YAML::ErrorMsg::UNKNOWN_ANCHOR;
    const Place place = exception_place(source, error.mark);
    if (const auto tab = indenting_tab(source, text, place.line); tab && !alias) {
      problems.add(*tab, "", "not YAML: a tab: lines are indented by spaces");
      return false;
    }
    const std::string reason = alias ? kNoAlias : "not YAML: " + printable(error.msg, 200);
    problems.add(place, "", reason);
  }
  return problems.count() == before;
}

bool parse_file(const std::string& path, Problems& problems, Node& out, bool regular) {
  const std::optional<std::string> text =
      regular ? read_regular(path, kMaxBytes) : read_whole(path, kMaxBytes);
  if (!text) {
    const int cause = errno;
    std::error_code unknown;
    problems.add({path, 0, 0}, "",
                 std::filesystem::is_directory(path, unknown) ? "is a folder: name a file"
                 : cause == EFBIG                             ? concat("larger than ", kMaxBytes, " bytes")
                 : regular && cause == EINVAL ? "is not a regular file, as configurations of runs are"
                                              : concat("cannot be read: ", std::strerror(cause)));
    return false;
  }
  return parse_text(*text, path, problems, out);
}

bool parse_text(std::string_view text, const std::string& path, Problems& problems, Node& out) {
  if (!parse_document(text, path, problems, out)) return false;
  if (out.kind == Node::Kind::kNull) out.kind = Node::Kind::kMap;  // the file contains only comments
  if (out.is_map()) return true;
  problems.add(out.place, "",
               "must hold the sections name, env, trainer, policy, saving, eval, play, autoscale, not " +
                   kind_name(out));
  return false;
}

}  // namespace wd::config
