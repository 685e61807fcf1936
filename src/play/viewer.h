// viewer.h: the page that plays a rollout (viewer.html), with marks where its content belongs.
#pragma once

namespace wd {

extern const char* const kViewer;

}  // namespace wd
