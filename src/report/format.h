// format.h: formats numbers for display.
#pragma once

#include <cstdint>
#include <string>

namespace wd::report {

std::string format_number(const char* pattern, double value);  // printf pattern
std::string format_count(double value);                        // 999, 12.3k, 1.23M
std::string format_duration(double seconds);                   // 9s, 1m05s, 2h03m, 4d01h
std::string format_bytes(std::uint64_t bytes);                 // 12 KiB, 812 MiB, 1.2 GiB
std::string format_return(double value);                       // 12.31; "-" if no episode has ended
std::string counted(std::int64_t n, const std::string& noun);  // 1 role, 2 roles

}  // namespace wd::report
