// page.h: the page of a report (page.html), with a mark where its data belong.
#pragma once

namespace wd::run_report {

extern const char* const kReportPage;

}  // namespace wd::run_report
