// page.h: the page of a report (page.html), with a mark where its data belong.
#pragma once

namespace wd::report {

extern const char* const kReportPage;

}  // namespace wd::report
