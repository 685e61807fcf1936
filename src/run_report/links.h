// links.h: links from a report to the recorded episodes of its runs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace wd::run_report {

// [{"name", "href"}] of RUN/rollouts/*.html and RUN/rollout.html, relative to the folder of the page.
nlohmann::ordered_json rollout_links(const std::filesystem::path& run, const std::filesystem::path& page);

}  // namespace wd::run_report
