// source.cpp: looks for structs and functions in the text of a file.
#include "src/plugin/source.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <regex>
#include <vector>

#include "src/base/files.h"
#include "src/base/join.h"
#include "wd/error.h"

namespace wd::plugin {
namespace {

// A C++ compiler alone does not report this, and nvcc does. A macro of the user's own may stand for WD_FN.
void check_device_functions(const Source& source, const std::string& text) {
  static const std::regex function(
      R"((\w*)[ \t\n]+static[ \t\n]+\w+[ \t\n]+(reset|derive|step|observe|in_game|streams)\()");
  for (std::sregex_iterator one(text.begin(), text.end(), function), end; one != end; ++one) {
    const std::string before = (*one)[1];
    if (before == "__device__" || std::isupper(static_cast<unsigned char>(before[0])) != 0) continue;
    throw UsageError(concat(
        source.path.string(), ":", std::count(text.begin(), text.begin() + one->position(2), '\n') + 1, ": ",
        (*one)[2].str(), "() lacks WD_FN, without which no GPU can call it: write it before 'static'"));
  }
}

}  // namespace

std::string camel_case(const std::string& name) {
  std::string result;
  bool begins = true;
  for (const char c : name) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter) result += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = !letter;
  }
  return result;
}

Source read_source(const std::filesystem::path& path) {
  Source source{std::filesystem::absolute(path).lexically_normal(), path.stem().string(), ""};
  const std::optional<std::string> text = read_regular(source.path, kMaxInput);
  if (!text)
    throw UsageError(
        concat(path.string(), ": ", errno == ENOENT ? "there is no such file" : std::strerror(errno)));
  check_device_functions(source, *text);
  static const std::regex structure(R"((^|\n)struct +(\w+)[^;{]*\{)");
  std::vector<std::string> found;
  for (std::sregex_iterator one(text->begin(), text->end(), structure), end; one != end; ++one)
    found.push_back((*one)[2]);
  source.structure = camel_case(source.name);
  if (contains(found, source.structure)) return source;
  if (found.size() != 1)
    throw UsageError(concat(path.string(), ": has ",
                            found.empty() ? "no struct" : "the structs " + join(found),
                            ", and the environment is struct ", source.structure,
                            ", as the file is named, or the only one: rename the one that is meant"));
  source.structure = found.front();
  return source;
}

}  // namespace wd::plugin
