// check_python.cpp: requests to python/wdtrain/checks.py, and comparison of its numbers with ours.
#include "src/cli/check_python.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

#include "src/base/json.h"
#include "src/base/stopwatch.h"
#include "src/cli/output.h"
#include "src/outside/python.h"
#include "src/outside/python_process.h"
#include "src/report/format.h"
#include "wd/vector_env.h"

namespace wd::cli {
namespace {

using nlohmann::json;

constexpr const char* kStateOption =
    "--state MODULE:FUNCTION names a function of the original that returns "
    "{field: number or list of numbers}";

double number_of(const json& value) {
  return value.is_string() ? std::strtod(value.get<std::string>().c_str(), nullptr) : value.get<double>();
}

std::string shown(double value) { return report::format_number("%.9g", value); }

json list_of(const ActionSpace& space) {
  if (!space.is_continuous()) return space.heads;
  json bounds = json::array();
  for (const Bounds& one : space.bounds) {
    const auto side = [](float bound) { return std::isinf(bound) ? json() : json(bound); };
    bounds.push_back({side(one.low), side(one.high)});
  }
  return bounds;
}

// The same of a role that worker.py describes: bounds are rounded to float, as ours are.
json list_of(const json& role) {
  if (role.contains("heads")) return role.at("heads");
  json bounds = role.at("bounds");
  for (json& pair : bounds)
    for (json& bound : pair)
      if (!bound.is_null()) bound = bound.get<float>();
  return bounds;
}

std::string full_name(const std::string& original) {
  constexpr std::string_view kLong = "gymnasium:";
  const std::string name = original.starts_with(kLong) ? "gym:" + original.substr(kLong.size()) : original;
  if (!is_python_environment(name))
    throw UsageError(
        concat("--against ", original, ": must be gym:ID, pettingzoo:MODULE or MODULE:FUNCTION"));
  return name;
}

// What is compared, and how it went.
struct Quantity {
  const char* name;
  std::string fault = {}, place = {};  // the first difference beyond the tolerance; where the largest is
  double largest = 0.0;
};

class Comparison {
 public:
  Comparison(const Environment& environment, const AgainstOptions& against, const CheckOptions& options)
      : against_(against),
        options_(options),
        ours_(environment, {.num_envs = 1, .seed = options.seed}, AutoReset::kDisabled),
        original_(make_python_environment(full_name(against.original))),
        process_(outside::start_process(*original_, options.seconds)) {
    ours_.reset();
    find_fields();
  }

  bool run() {
    open();
    const bool fits = check_spaces();
    bool passed = check_time_limit() && fits;
    if (!fits) {
      print(check_line("skipped", {"all other checks", "ours and the original have different spaces"}));
      return false;
    }
    play();
    const std::string steps = report::counted(steps_, "step"),
                      extent = concat(steps, ", ", report::counted(episode_ + 1, "episode"));
    for (const Quantity* const one : {&observations_, &rewards_}) {
      const std::string largest =
          one->place.empty() ? "no difference"
                             : concat("largest difference ", report::format_number("%.2g", one->largest),
                                      " (", one->place, ")");
      passed = judge(one->name, one->fault, concat(extent, ", ", largest)) && passed;
    }
    if (has_masks_) passed = judge(masks_.name, masks_.fault, extent) && passed;
    const std::string ends =
        ended_ == 0
            ? concat("none of ", steps, " ended an episode (--steps N plays more)")
            : concat(report::counted(terminated_, "episode"), " terminated, ", truncated_, " truncated");
    return judge(ends_.name, ends_.fault, ends, ended_ == 0) && passed;
  }

 private:
  const Spec& spec() const { return ours_.replicas().spec(); }

  // Shows the fault of a check or, if there is none, how much was compared. Returns whether there is none.
  static bool judge(const std::string& name, const std::string& fault, const std::string& extent,
                    bool warns = false) {
    return show({name, fault.empty() ? extent : fault, fault.empty(), warns});
  }

  // The fields that must be given: a field that derive() computes does not keep another number.
  void find_fields() {
    Replicas& replicas = ours_.replicas();
    for (const StateField& field : replicas.layout().fields) {
      if (field.scratch) continue;
      if (field.type == FieldType::kFloat || field.type == FieldType::kDouble) {
        std::vector<double> values = replicas.read(0, field);
        values[0] += 1.0;
        replicas.write(0, dump(json{{field.name, values}}));
        if (std::abs(replicas.read(0, field)[0] - values[0]) > 0.5) continue;
      }
      fields_.push_back({{"name", field.name}, {"count", field.count}});
    }
  }

  json ask(json request) {
    request["do"] = "check";
    json answer = process_->call(request);
    if (!answer.contains("refused")) return answer;
    std::vector<std::string> names;
    for (const json& field : fields_)
      names.push_back(concat(field.at("name").get<std::string>(), " [", field.at("count").get<int>(), "]"));
    const auto text = answer["refused"].get<std::string>();
    const bool state = text.find("state") != std::string::npos;
    throw UsageError(concat("--against ", against_.original, ": ", text,
                            state ? concat(". The state of ours is ", join(names), ": ", kStateOption) : ""));
  }

  void open() {
    json request = outside::request_of(*original_, "check");
    if (!against_.kwargs.empty()) {
      request["kwargs"] = against_.kwargs;
      if (!parse_json(against_.kwargs).is_object())
        throw UsageError(
            concat("--kwargs ", against_.kwargs, ": must be a JSON object: {\"continuous\": true}"));
    }
    request.update(
        {{"what", "open"}, {"fields", fields_}, {"state", against_.state}, {"seed", options_.seed}});
    description_ = ask(request);
  }

  bool check_spaces() {
    const json& roles = description_.at("roles");
    std::string fault;
    if (roles.size() != spec().roles.size())
      fault = concat("ours has ", report::counted(static_cast<int>(spec().roles.size()), "role"),
                     ", and the original ", roles.size());
    int numbers = 0;
    for (std::size_t r = 0; r < std::min(roles.size(), spec().roles.size()) && fault.empty(); ++r) {
      const Role& role = spec().roles[r];
      const json& other = roles[r];
      int size = 0;
      for (const json& part : other.at("observation")) size += part.at(1).get<int>();
      const json action = list_of(role.action), original = list_of(other);
      if (other.at("count") != role.count)
        fault = concat(role.name, ": ours has ", role.count, " agents, and the original ",
                       other.at("count").dump());
      else if (size != role.observation_size())
        fault = concat(role.name, ": ours observes ", report::counted(role.observation_size(), "number"),
                       ", and the original ", size);
      else if (role.action.is_continuous() == other.contains("heads") || action != original)
        fault = concat(role.name, ": the action of ours is ",
                       role.action.is_continuous() ? "bounds " : "choices ", dump(action),
                       ", and that of the original ", other.contains("heads") ? "choices " : "bounds ",
                       dump(original));
      numbers += size;
      masked_.push_back(role.action_mask && other.at("mask").get<bool>());
      original_masks_.push_back(other.at("mask").get<bool>() ? role.action.choices() : 0);
      has_masks_ = has_masks_ || masked_.back();
    }
    return judge("same spaces", fault,
                 concat(report::counted(numbers, "observed number"), ", ",
                        report::counted(static_cast<int>(roles.size()), "role")));
  }

  bool check_time_limit() {
    const json& limit = description_.at("time_limit");
    if (limit.is_null()) {
      print(check_line("skipped", {"same time limit", "that of the original is not known"}));
      return true;
    }
    const std::string ours = report::counted(spec().time_limit, "step");
    const bool same = limit.get<int>() == spec().time_limit;
    return judge("same time limit",
                 same ? "" : concat("ours is ", ours, ", and the original's ", limit.get<int>()), ours);
  }

  void play() {
    const Stopwatch watch;
    begin();
    while (steps_ < options_.steps && (steps_ < kMinSteps || watch.seconds() < options_.seconds)) {
      const json before = state_;
      const json answer = ask({{"what", "step"}});
      ++steps_, ++step_;
      write_actions(answer.at("actions"));
      ours_.step();
      state_ = answer.at("state");
      circumstances_ = concat("; action ", dump(answer.at("actions")), ", state before ", dump(before));
      const bool over = compare_ends(answer);
      compare_numbers(answer, over);
      if (!ends_.fault.empty()) return;
      if (against_.drift && !(observations_.fault.empty() && rewards_.fault.empty())) return;
      if (over) {
        ++ended_;
        if (steps_ >= options_.steps) return;
        ++episode_;
        begin();
      } else if (!against_.drift) {
        write_state();
      }
    }
  }

  void begin() {
    step_ = 0;
    state_ = ask({{"what", "reset"},
                  {"seed", (options_.seed + static_cast<std::uint64_t>(episode_)) & 0x7fffffff}})
                 .at("state");
    ours_.reset();
    write_state();
  }

  void write_state() {
    try {
      ours_.replicas().write(0, dump(state_));
    } catch (const UsageError& error) {
      throw UsageError(concat("--against ", against_.original,
                              ": the state of the original does not fit ours: ", error.what(), ": ",
                              kStateOption));
    }
  }

  void write_actions(const json& actions) {
    const at::Tensor all = at::tensor(actions.get<std::vector<float>>());
    std::int64_t begin = 0;
    for (const VectorEnv::RoleRows& rows : ours_.roles()) {
      const std::int64_t count = rows.action.numel();
      rows.action.copy_(all.narrow(0, begin, count).view_as(rows.action));
      begin += count;
    }
  }

  void note(Quantity& quantity, const std::string& what) {
    if (quantity.fault.empty()) quantity.fault = concat(place(), ": ", what, circumstances_);
  }
  std::string place() const { return concat("episode ", episode_, ", step ", step_); }

  void compare(Quantity& quantity, const std::string& name, double mine, const json& other) {
    const double theirs = number_of(other);
    const double difference = mine == theirs ? 0.0 : std::abs(mine - theirs);
    if (difference > quantity.largest) {
      quantity.largest = difference;
      quantity.place = concat(name, ", ", place());
    }
    if (!(difference <= against_.atol + against_.rtol * std::abs(theirs)))
      note(quantity, concat(name, " is ", shown(mine), ", and the original's is ", shown(theirs)));
  }

  // Returns whether the episode has ended.
  bool compare_ends(const json& answer) {
    const bool terminated = ours_.all().terminated[0].item<bool>(),
               truncated = ours_.all().truncated[0].item<bool>();
    const bool was_terminated = answer.at("terminated"), was_truncated = answer.at("truncated");
    const auto words = [](bool end, bool cut) { return end ? "terminated" : cut ? "truncated" : "going on"; };
    if (terminated != was_terminated || truncated != was_truncated)
      note(ends_, concat("the episode is ", words(terminated, truncated), ", and the original's is ",
                         words(was_terminated, was_truncated)));
    terminated_ += was_terminated ? 1 : 0;
    truncated_ += was_truncated ? 1 : 0;
    return was_terminated || was_truncated;
  }

  // `at`: where the agent's numbers begin among those of the original.
  void compare_row(const Role& role, const std::string& who, const float* mine, const json& answer,
                   std::size_t at) {
    for (const ObservationPart& part : role.observation) {
      for (int k = 0; k < part.size; ++k, ++mine, ++at)
        compare(observations_, who + part.name + (part.size > 1 ? concat("[", k, "]") : ""),
                static_cast<double>(*mine), answer.at("observations")[at]);
    }
  }

  void compare_numbers(const json& answer, bool over) {
    std::size_t agent = 0, at = 0, mask_at = 0;
    for (std::size_t r = 0; r < ours_.roles().size(); ++r) {
      const VectorEnv::RoleRows& rows = ours_.roles()[r];
      const Role& role = *rows.role;
      const at::Tensor observation = rows.observation.contiguous();
      const int size = role.observation_size();
      for (int i = 0; i < role.count; ++i, ++agent, at += static_cast<std::size_t>(size)) {
        const std::string who =
            ours_.replicas().layout().num_agents > 1 ? concat(role.name, " ", i, ": ") : "";
        const bool plays = answer.at("in_game")[agent].get<int>() != 0;
        if (!over && rows.active[0][i].item<bool>() != plays)
          note(ends_, concat(who, "the agent is ",
                             plays ? "out of the game, and the original's is in it"
                                   : "in the game, and the original's is out of it"));
        compare(rewards_, who + "the reward", static_cast<double>(rows.reward[0][i].item<float>()),
                answer.at("rewards")[agent]);
        if (plays) compare_row(role, who, observation.const_data_ptr<float>() + i * size, answer, at);
        for (int k = 0; k < original_masks_[r]; ++k, ++mask_at) {
          if (!masked_[r] || !plays || over) continue;
          const bool mine = rows.action_mask[0][i][k].item<bool>();
          const bool other = answer.at("masks")[mask_at].get<int>() != 0;
          if (mine != other)
            note(masks_, concat(who, "choice ", k, " is ", mine ? "legal" : "illegal",
                                ", and the original's is not"));
        }
      }
    }
  }

  const AgainstOptions& against_;
  const CheckOptions& options_;
  VectorEnv ours_;
  std::unique_ptr<Environment> original_;
  std::unique_ptr<outside::PythonProcess> process_;
  json fields_ = json::array();  // {name, count} of those that the original must give
  json description_, state_;     // of the original
  std::vector<bool> masked_;     // by role: both have masks
  std::vector<int> original_masks_;
  bool has_masks_ = false;
  std::string circumstances_;
  int steps_ = 0, step_ = 0, episode_ = 0, ended_ = 0, terminated_ = 0, truncated_ = 0;
  Quantity observations_{"same observations"}, rewards_{"same rewards"}, ends_{"same ends"},
      masks_{"same masks"};
};

}  // namespace

std::string check_line(const char* verdict, const CheckResult& result) {
  constexpr int kWidth = 36;  // the longest name plus two
  return concat(report::padded(verdict, -9), report::padded(result.name, -kWidth), result.detail, "\n");
}

bool show(const CheckResult& result) {
  print(check_line(!result.passed ? "FAILED" : result.warns ? "warning" : "ok", result));
  return result.passed;
}

bool check_python(const Environment& environment, const CheckOptions& options) {
  const auto process = outside::start_process(environment, options.seconds);
  json request = outside::request_of(environment, "check");
  request.update({{"what", "begin"},
                  {"seed", options.seed},
                  {"steps", options.steps},
                  {"seconds", options.seconds},
                  {"time_limit", environment.spec().time_limit}});
  bool passed = true;
  try {
    process->call(request);
    for (;;) {
      const json answer = process->call({{"do", "check"}, {"what", "next"}});
      const std::string verdict = answer.at("verdict");
      if (verdict == "done") return passed;
      print(check_line(verdict.c_str(), {answer.at("name"), answer.at("detail")}));
      passed = passed && verdict != "FAILED";
    }
  } catch (const outside::ProcessFailed& failure) {
    print(check_line("FAILED", {"the process answers", failure.what()}));
    return false;
  }
}

bool check_against(const Environment& environment, const AgainstOptions& against,
                   const CheckOptions& options) {
  try {
    return Comparison(environment, against, options).run();
  } catch (const outside::ProcessFailed& failure) {
    print(check_line("FAILED", {"the original plays", failure.what()}));
    return false;
  }
}

}  // namespace wd::cli
