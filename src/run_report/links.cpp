// links.cpp: finds recorded episodes, and writes their paths as URLs.
#include "src/run_report/links.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

namespace wd::run_report {
namespace {

namespace fs = std::filesystem;

std::string url_of(const std::string& path) {
  std::string url;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::string_view("/-_.~").find(c) != std::string_view::npos) {
      url += c;
    } else {
      std::array<char, 4> code{};
      std::snprintf(code.data(), code.size(), "%%%02X", byte);
      url += code.data();
    }
  }
  return url;
}

std::vector<fs::path> pages_in(const fs::path& folder) {
  std::vector<fs::path> pages;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".html" && !entry->path().filename().string().starts_with('.'))
      pages.push_back(entry->path());
  std::ranges::sort(pages, {}, [](const fs::path& path) {  // iteration_9 before iteration_10
    const std::string name = path.filename().string();
    return std::pair(name.size(), name);
  });
  return pages;
}

}  // namespace

nlohmann::ordered_json rollout_links(const fs::path& run, const fs::path& page) {
  std::vector<fs::path> files = pages_in(run / "rollouts");
  std::error_code missing;
  if (const fs::path single = run / "rollout.html"; fs::is_regular_file(single, missing))
    files.push_back(single);
  const fs::path base = fs::absolute(page).lexically_normal().parent_path();
  auto links = nlohmann::ordered_json::array();
  for (const fs::path& file : files) {
    const fs::path target = fs::absolute(file).lexically_normal().lexically_relative(base);
    links.push_back({{"name", file.stem().string()}, {"href", url_of(target.string())}});
  }
  return links;
}

}  // namespace wd::run_report
