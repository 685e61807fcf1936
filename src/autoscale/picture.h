// picture.h: a search as an SVG picture: speed over replicas, with what came of every try.
#pragma once

#include <string>

#include "src/autoscale/report.h"

namespace wd::scaling {

// A document of its own: no script, no font, no link. Texts from elsewhere are escaped.
std::string svg(const Report& report);

}  // namespace wd::scaling
