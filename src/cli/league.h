// league.h: the page of a league (league.html), with marks where its style and its numbers belong.
#pragma once

namespace wd::cli {

extern const char* const kLeaguePage;

}  // namespace wd::cli
