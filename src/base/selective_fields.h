// selective_fields.h: a visitor of settings that handles some of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wd/params.h"

namespace wd {

// Ignores every field. A subclass overrides the functions of the fields that it handles.
class SelectiveFields : public Fields {
 public:
  void operator()(const char*, bool&, const char*) override {}
  void operator()(const char*, int&, Range, const char*) override {}
  void operator()(const char*, std::int64_t&, Range, const char*) override {}
  void operator()(const char*, float&, Range, const char*) override {}
  void operator()(const char*, double&, Range, const char*) override {}
  void choice(const char*, int&, std::span<const char* const>, const char*) override {}
  void operator()(const char*, std::string&, const char*) override {}
  void operator()(const char*, std::vector<int>&, Range, const char*) override {}
  void operator()(const char*, Schedule&, Range, const char*) override {}
  void operator()(const char*, std::vector<std::string>&, const char*) override {}
  void operator()(const char*, std::optional<double>&, Range, const char*) override {}
};

}  // namespace wd
