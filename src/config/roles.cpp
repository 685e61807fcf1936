// roles.cpp: assigns exactly one policy to every agent.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "src/base/join.h"
#include "src/base/suggest.h"
#include "src/config/layers.h"
#include "src/config/role_names.h"
#include "wd/detail/step_view.h"

namespace wd::config {
namespace {

constexpr char kShared[] = "shared";

std::string action_text(const ActionSpace& action) {
  if (action.is_continuous()) return std::to_string(action.components()) + " continuous";
  return join(action.heads, " x ") + " choices";
}

std::string spaces_text(const Role& role) {
  return concat(role.name, " observes ", role.observation_size(), " numbers and acts by ",
                action_text(role.action));
}

bool same_spaces(const Role& a, const Role& b) {
  return a.observation_size() == b.observation_size() && a.action.heads == b.action.heads &&
         a.action.bounds == b.action.bounds && a.action_mask == b.action_mask;
}

// "7" as {7, 7}, "0-49" as {0, 49}; nothing if the text is neither.
std::optional<std::pair<int, int>> range_in(std::string_view text) {
  std::pair<int, int> range;
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): from_chars is told the end
  const std::from_chars_result first = std::from_chars(text.data(), end, range.first);
  if (first.ec != std::errc() || range.first < 0) return {};
  range.second = range.first;
  if (first.ptr == end) return range;
  if (*first.ptr != '-') return {};
  const std::from_chars_result last = std::from_chars(first.ptr + 1, end, range.second);
  if (last.ec != std::errc() || last.ptr != end || range.second < 0) return {};
  return range;
}

int first_agent(const Spec& spec, int role) {
  int first = 0;
  for (int r = 0; r < role; ++r) first += spec.roles[static_cast<std::size_t>(r)].count;
  return first;
}

// "3" or "5-9" of a role's agents.
std::string numbers_text(int first, int last) {
  return first == last ? concat(first) : concat(first, '-', last);
}

void check_range(std::pair<int, int> range, int count, const std::string& whose) {
  if (range.first > range.second) throw UsageError("the first number is above the last one");
  if (range.second >= count) throw UsageError(concat(whose, " 0 to ", count - 1));
}

// Agents by ids, as ranges that end where a role ends.
std::vector<AgentRange> ranges_of_ids(std::pair<int, int> ids, const Spec& spec) {
  check_range(ids, spec.num_agents(), "the agents' ids are");
  std::vector<AgentRange> ranges;
  for (int r = 0; r < static_cast<int>(spec.roles.size()); ++r) {
    const int begin = std::max(first_agent(spec, r), ids.first);
    const int end = std::min(first_agent(spec, r + 1), ids.second + 1);
    if (begin < end) ranges.push_back({r, begin, end - begin});
  }
  return ranges;
}

std::vector<AgentRange> whole_role(const std::string& name, const Spec& spec) {
  const std::vector<std::string> names = role_names(spec);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw UsageError("no such role" + suggestion(name, names));
  const int role = static_cast<int>(found - names.begin());
  return {{role, first_agent(spec, role), spec.roles[static_cast<std::size_t>(role)].count}};
}

// What a policy lists: the key, and its entries.
std::pair<std::string, const std::vector<std::string>*> listed(const PolicySettings& policy) {
  return policy.agents.empty() ? std::pair("roles", &policy.roles) : std::pair("agents", &policy.agents);
}

// The ranges that a policy lists, without entries that name no agents, which claim_all() reports.
std::vector<AgentRange> ranges_of(const PolicySettings& policy, const Spec& spec) {
  const auto& [key, entries] = listed(policy);
  std::vector<AgentRange> all;
  for (const std::string& entry : *entries) {
    try {
      std::ranges::copy(parse_agents(entry, spec), std::back_inserter(all));
    } catch (const UsageError&) {
    }
  }
  return all;
}

// Fills the names of the roles of the policy's agents, and checks them if they are given too.
void name_roles(PolicySettings& policy, const Spec& spec, Problems& problems, const Places& places) {
  const std::vector<std::string> given = policy.roles;
  if (!policy.agents.empty()) policy.roles.clear();
  policy.roles = roles_of(policy, spec);
  const std::string path = "policy." + policy.name;
  if (policy.roles.empty() && policy.agents.empty()) {
    report(problems, places, path, "",
           "no role of that name; name it " + join(role_names(spec)) + " or " + kShared +
               ", or give it roles: [...]");
  } else if (!policy.agents.empty() && !given.empty() && !std::ranges::is_permutation(given, policy.roles)) {
    report(problems, places, path + ".roles", join(given),
           "agents are given too, of " + join(policy.roles) + ": leave out roles");
  }
}

// Who acts for each agent, by id: index of a policy, or -1.
using Owners = std::vector<int>;

// Assigns the agents of one entry to the policy. Throws UsageError with the reason if that is not possible.
void claim(const Spec& spec, const Config& config, int policy, const AgentRange& range, Owners& owners) {
  const int begin = range.first, end = range.first + range.count, first = first_agent(spec, range.role);
  const Role& role = spec.roles[static_cast<std::size_t>(range.role)];
  for (int agent = begin; agent < end; ++agent) {
    int& owner = owners[static_cast<std::size_t>(agent)];
    if (owner < 0) {
      owner = policy;
      continue;
    }
    const auto same = [&](int other) { return other == owner; };
    const bool whole =
        range.count == role.count && std::ranges::all_of(owners.begin() + begin, owners.begin() + end, same);
    throw UsageError("policy \"" + config.policies[static_cast<std::size_t>(owner)].name + "\" has " +
                     (whole ? "this role" : concat(role.name, ' ', agent - first)) + " already");
  }
}

// Assigns the agents of one policy to it.
void claim_all(const Spec& spec, Config& config, std::size_t index, Owners& owners, Problems& problems,
               const Places& places) {
  const PolicySettings& policy = config.policies[index];
  const auto& [key, entries] = listed(policy);
  const std::string path = "policy." + policy.name + "." + key;
  const Role* first = nullptr;
  for (const std::string& entry : *entries) {
    try {
      for (const AgentRange& range : key == "roles" ? whole_role(entry, spec) : parse_agents(entry, spec)) {
        claim(spec, config, static_cast<int>(index), range, owners);
        const Role& role = spec.roles[static_cast<std::size_t>(range.role)];
        if (first == nullptr) first = &role;
        if (same_spaces(*first, role)) continue;
        report(problems, places, path, join(*entries),
               "one policy needs equal spaces, but " + spaces_text(*first) + ", " + spaces_text(role));
      }
    } catch (const UsageError& error) {
      report(problems, places, path, printable(entry), error.what());
    }
  }
}

// The runs of agents that have the same owner, role by role.
std::vector<Seat> seats_of(const Spec& spec, const Owners& owners) {
  std::vector<Seat> seats;
  int agent = 0;
  for (int r = 0; r < static_cast<int>(spec.roles.size()); ++r) {
    for (const int end = first_agent(spec, r + 1); agent < end; ++agent) {
      const int owner = owners[static_cast<std::size_t>(agent)];
      if (!seats.empty() && seats.back().role == r && seats.back().policy == owner) {
        ++seats.back().count;
      } else {
        seats.push_back({r, agent, 1, owner});
      }
    }
  }
  return seats;
}

}  // namespace

std::vector<AgentRange> parse_agents(const std::string& text, const Spec& spec) {
  if (const auto ids = range_in(text)) return ranges_of_ids(*ids, spec);
  const std::size_t space = text.rfind(' ');
  const auto range =
      space == std::string::npos ? std::nullopt : range_in(std::string_view(text).substr(space + 1));
  const std::string name = range ? text.substr(0, text.find_last_not_of(' ', space) + 1) : text;
  const AgentRange whole = whole_role(name, spec).front();
  if (!range) return {whole};
  check_range(*range, whole.count, "the agents of " + name + " are");
  return {{whole.role, whole.first + range->first, range->second - range->first + 1}};
}

std::vector<std::string> roles_of(const PolicySettings& policy, const Spec& spec) {
  if (!policy.agents.empty()) {
    std::vector<std::string> names;
    for (const AgentRange& range : ranges_of(policy, spec)) {
      const std::string& name = spec.roles[static_cast<std::size_t>(range.role)].name;
      if (!contains(names, name)) names.push_back(name);
    }
    return names;
  }
  if (!policy.roles.empty()) return policy.roles;
  const std::vector<std::string> roles = role_names(spec);
  if (contains(roles, policy.name)) return {policy.name};
  return policy.name == kShared ? roles : std::vector<std::string>{};
}

int num_agents_of(const PolicySettings& policy, const Spec& spec) {
  int agents = 0;
  for (const AgentRange& range : ranges_of(policy, spec)) agents += range.count;
  return agents;
}

void assign_agents(const Spec& spec, Config& config, Problems& problems, const Places& places) {
  Owners owners(static_cast<std::size_t>(spec.num_agents()), -1);
  for (std::size_t i = 0; i < config.policies.size(); ++i) {
    name_roles(config.policies[i], spec, problems, places);
    claim_all(spec, config, i, owners, problems, places);
  }
  config.seats = seats_of(spec, owners);
  for (const Seat& seat : config.seats) {
    if (seat.policy >= 0) continue;
    const Role& role = spec.roles[static_cast<std::size_t>(seat.role)];
    const int first = seat.first_agent - first_agent(spec, seat.role);
    report(problems, places, "policy", "",
           seat.count == role.count ? "role \"" + role.name + "\" has no policy"
                                    : concat("agents ", role.name, ' ',
                                             numbers_text(first, first + seat.count - 1), " have no policy"));
  }
  if (config.seats.size() > kMaxSeats)
    report(problems, places, "policy", "",
           concat("the policies divide the agents into ", config.seats.size(), " runs, and ", kMaxSeats,
                  " are the most: give each policy agents that follow each other"));
}

}  // namespace wd::config
