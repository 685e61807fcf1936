// new.cpp: `wdtrain new NAME`: writes a small environment that learns as it is, to be changed into one's own.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "src/base/atomic_file.h"
#include "src/base/binary_path.h"
#include "src/base/printable.h"
#include "src/cli/arguments.h"
#include "src/cli/output.h"
#include "wd/error.h"

namespace wd::cli {
namespace {

// A line may begin with `?` and letters, each of which must hold: s, one role, or r, several; d, discrete actions,
// or c, continuous ones; i, rewards of each agent, or t, of the team.
constexpr const char* kCode =
    R"game(?s// @NAME@.cu: agents walk on a square to food. What is eaten grows again elsewhere.
?r// @NAME@.cu: agents walk on a square to food. The role @LAST@ hunts them.
#include <wd/env.h>

struct @STRUCT@ {
  struct Params {  // settings, as env.size
    int size = 8;
    void describe(auto&& field) { field("size", size, {1, 1000}, "length of a side"); }
  };
  struct State {  // all that an episode remembers
    wd::PerAgent<float> x, y;
    wd::PerReplica<float> food_x, food_y;
    void describe(auto&& add) { add("x", x), add("y", y), add("food_x", food_x), add("food_y", food_y); }
  };
  enum Draw { kX, kY, kFoodX, kFoodY };  // what each random number is for
?s  static constexpr int kNumAgents = 4;
?r  static constexpr int @COUNTS@, kNumAgents = kHunted + 1, kHunter = kHunted;

  static wd::Spec spec(const Params& p) {
?s    const std::vector<wd::ObservationPart> sees = {{"place", 2}, {"to_food", 2}};
?r    const std::vector<wd::ObservationPart> sees = {{"place", 2}, {"to_food", 2}, {"to_opponent", 2}};
?d    const auto acts = wd::ActionSpace::discrete({5}, {"move"});
?c    const auto acts = wd::ActionSpace::box(2, -1.0f, 1.0f, {"dx", "dy"});
    wd::Spec spec{.roles = {}, .time_limit = 50};
?s    spec.roles.push_back({"@LAST@", kNumAgents, sees, acts@MASK@});
?r    @ADD@    spec.roles.push_back({"@LAST@", 1, sees, acts@MASK@});
?t    spec.streams = {{"state", wd::StreamSpec::kReplica, {2 * kNumAgents}}};  // for the critic
    spec.drawing = {.left = -1, .bottom = -1, .right = p.size + 1.0, .top = p.size + 1.0, .shapes = {}};
    spec.drawing.shapes = {wd::drawing::circle("x", "y", 0.4), wd::drawing::circle("food_x", "food_y", 0.2)};
    return spec;
  }
  WD_FN static void reset(auto& team, const Params& p, State& s, wd::Random r) {
    team.each(kNumAgents, [&](int i) { s.x[i] = draw(p, r, i, kX), s.y[i] = draw(p, r, i, kY); });
    team.once([&] { s.food_x = draw(p, r, 0, kFoodX), s.food_y = draw(p, r, 0, kFoodY); });
  }
  WD_FN static void step(auto& team, const Params& p, State& s, wd::Actions a, wd::Random r,
                         wd::Outcome& out) {
    team.each(kNumAgents, [&](int i) {
?d      const int move = a.discrete(i, 0);  // stay, right, left, up, down
?d      s.x[i] = wd::clamp(s.x[i] + (move == 1) - (move == 2), 0.0f, 1.0f * p.size);
?d      s.y[i] = wd::clamp(s.y[i] + (move == 3) - (move == 4), 0.0f, 1.0f * p.size);
?c      s.x[i] = wd::clamp(s.x[i] + a.continuous(i, 0), 0.0f, 1.0f * p.size);
?c      s.y[i] = wd::clamp(s.y[i] + a.continuous(i, 1), 0.0f, 1.0f * p.size);
    });  // all have moved when the next phase begins
?si    const bool eaten = team.any(kNumAgents, [&](int i) { return eats(s, i); });
?ri    const bool eaten = team.any(kHunted, [&](int i) { return eats(s, i); });
?st    float eaten = 0;
?st    for (int i = 0; i < kNumAgents; ++i) eaten += eats(s, i);  // in every thread
?rt    float eaten = 0, caught = 0;
?rt    for (int i = 0; i < kHunted; ++i) eaten += eats(s, i), caught += 0.25f * meets(s, i);  // in every thread
?si    team.each(kNumAgents, [&](int i) { out.reward(i) = eats(s, i); });
?st    team.each(kNumAgents, [&](int i) { out.reward(i) = eaten / kNumAgents; });
?ri    team.each(kHunted, [&](int i) { out.reward(i) = eats(s, i) - 0.25f * meets(s, i); });
?ri    team.once([&] { out.reward(kHunter) = meets(s, kHunter); });
?rt    team.each(kNumAgents, [&](int i) { out.reward(i) = i == kHunter ? caught : (eaten - caught) / kHunted; });
?t    if (eaten > 0) team.once([&] { s.food_x = draw(p, r, 0, kFoodX), s.food_y = draw(p, r, 0, kFoodY); });
?i    if (eaten) team.once([&] { s.food_x = draw(p, r, 0, kFoodX), s.food_y = draw(p, r, 0, kFoodY); });
  }
  WD_FN static void observe(auto& team, const Params& p, const State& s, wd::Observations obs) {
    team.each(kNumAgents, [&](int i) {
      const float x = s.x[i], y = s.y[i], size = p.size;
      obs(i, 0) = x / size, obs(i, 1) = y / size;
      obs(i, 2) = (s.food_x - x) / size, obs(i, 3) = (s.food_y - y) / size;
?r      const int other = opponent(s, i);
?r      obs(i, 4) = (s.x[other] - x) / size, obs(i, 5) = (s.y[other] - y) / size;
?d      std::uint8_t* mask = obs.action_mask(i);  // 1: the move is legal
?d      mask[0] = 1, mask[1] = x != size, mask[2] = x != 0, mask[3] = y != size, mask[4] = y != 0;
    });
  }
?t  WD_FN static void streams(auto& team, const Params& p, const State& s, wd::Streams rows) {
?t    float* row = rows.of_replica<float>(0);
?t    team.each(kNumAgents, [&](int i) { row[2 * i] = s.x[i] / p.size, row[2 * i + 1] = s.y[i] / p.size; });
?t  }
?d  WD_FN static int draw(const Params& p, wd::Random r, int i, Draw d) { return r.integer(i, d, p.size + 1); }
?c  WD_FN static float draw(const Params& p, wd::Random r, int i, Draw d) { return r.uniform(i, d) * p.size; }
  WD_FN static float square(float dx, float dy) { return dx * dx + dy * dy; }
  WD_FN static bool eats(const State& s, int i) { return square(s.x[i] - s.food_x, s.y[i] - s.food_y) < 1; }
?r  WD_FN static bool meets(const State& s, int i) { return square(s, i, opponent(s, i)) < 1; }
?r  WD_FN static float square(const State& s, int i, int j) { return square(s.x[i] - s.x[j], s.y[i] - s.y[j]); }
?r  WD_FN static int opponent(const State& s, int i) {  // the hunter, or the nearest of those that it hunts
?r    int best = i == kHunter ? 0 : kHunter;
?r    for (int j = 1; i == kHunter && j < kHunted; ++j) best = square(s, i, j) < square(s, i, best) ? j : best;
?r    return best;
?r  }
};
)game";

constexpr const char* kSettings =
    R"game(# @NAME@.yaml: what `@PROGRAM@ train ./@NAME@.cu` starts from. `@PROGRAM@ config lr` explains a setting.
env:
  size: 8

trainer:
  num_envs: 64             # games that are played at once
  train_batch_size: 3200   # steps of all games between two updates
  total_steps: 160_000

policy:
)game";

// Of each role.
constexpr const char* kPolicy = R"game(  @ROLE@:
?i    algorithm: PPO
?t    algorithm: MAPPO       # PPO whose critic reads the state of the game
?t    num_epochs: 4          # updates with the steps of a batch
    lr: 2e-3
    gamma: 0.95            # what a reward counts one step later
?i    model: {fc_dims: [64, 64], activation: tanh}
?t    model: {fc_dims: [64, 64], activation: tanh, separate_value: true, critic_reads: [observation, state]}
)game";

constexpr std::size_t kLongestWord = 20, kMostRoles = 8, kLongestRoles = 60;

// The lines of a template of which all letters are in `kinds`.
std::string chosen(const std::string& text, const std::string& kinds) {
  std::string result;
  for (const std::string& line : split(text, '\n')) {
    std::size_t end = line.starts_with('?') ? 1 : 0;
    bool holds = true;
    for (; end > 0 && line[end] >= 'a' && line[end] <= 'z'; ++end)
      holds = holds && kinds.find(line[end]) != kinds.npos;
    if (holds) result += line.substr(end) + '\n';
  }
  return result;
}

// Throws UsageError unless the word can be a part of names in C++, and none of `taken`.
void check_word(const std::string& what, const std::string& word, const std::vector<std::string>& taken) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (word.empty() || word.size() > kLongestWord || word[0] < 'a' || !std::ranges::all_of(word, fits))
    throw UsageError(concat(what, " '", on_one_line(word), "': must be a letter a-z and up to ",
                            kLongestWord - 1, " of the characters a-z 0-9 _, for example red_ant"));
  if (std::ranges::count(taken, word) > 0)
    throw UsageError(concat(what, " '", word, "': this name is taken; choose another"));
}

// red_ants -> RedAnts
std::string struct_name(const std::string& name) {
  std::string result;
  for (const std::string& word : split(name, '_'))
    if (!word.empty()) result += static_cast<char>(std::toupper(word[0])) + word.substr(1);
  return result;
}

}  // namespace

int create(const CommandLine& line) {
  Arguments arguments(
      line, "new",
      "Write an environment that learns as it is, NAME.cu, and its settings, NAME.yaml: agents "
      "that walk to food, to be changed into a game of your own.");
  std::string name, words = "ant", folder = ".";
  bool continuous = false, team = false;
  arguments.word("NAME", name, "name of the environment, for example ants");
  arguments.option("--roles", words, "ROLE,...",
                   "roles of agents; the last of several hunts the others (ant)");
  arguments.flag("--continuous", continuous, "actions are numbers instead of choices");
  arguments.flag("--team", team,
                 "all agents of a team get its mean reward, and a critic reads the whole state");
  arguments.option("--out", folder, "FOLDER", "where to write (the current folder)");
  if (!arguments.parse()) return 0;
  if (name.empty()) throw UsageError(concat("new needs a name: ", line.program, " new ants"));
  check_word("environment name", name, {"params", "state", "draw"});  // names inside the struct
  const std::vector<std::string> roles = split(words, ',');
  std::vector<std::string> taken = {"shared"};  // a policy of this name acts for all roles
  for (const std::string& role : roles) {
    check_word("--roles: role", role, taken);
    taken.push_back(role);
  }
  if (roles.size() > kMostRoles || words.size() > kLongestRoles)
    throw UsageError(concat("--roles ", words, ": name at most ", kMostRoles, " roles, with ", kLongestRoles,
                            " characters in all, and add others in the file"));
  const auto place = [&](const std::string& file) { return (std::filesystem::path(folder) / file).string(); };
  const std::string code = place(name + ".cu"), settings = place(name + ".yaml"), editor = place(".clangd");
  check_place("--out", code);
  for (const std::string& file : {code, settings})
    if (std::filesystem::exists(std::filesystem::symlink_status(file)))
      throw UsageError(concat(file, " exists: remove it, or choose another name or --out FOLDER"));

  const bool several = roles.size() > 1;
  const std::string kinds = {several ? 'r' : 's', continuous ? 'c' : 'd', team ? 't' : 'i'};
  const std::string mask = continuous ? "" : ", true";
  std::string policies, hunted;
  for (const std::string& role : roles) {
    policies += filled(kPolicy, {{"@ROLE@", role}});
    if (role != roles.back()) hunted += concat(hunted.empty() ? "" : ", ", '"', role, '"');
  }
  std::string add = concat("spec.roles.push_back({", hunted, ", kHunted, sees, acts", mask, "});\n");
  if (roles.size() > 2) {
    const std::string loop = concat("for (const char* name : {", hunted, "})");
    add = concat("spec.roles.push_back({name, kEach, sees, acts", mask, "});\n");
    add = loop + (loop.size() + add.size() > 110 - 4 ? "\n      " : " ") + add;
  }
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"@ADD@", add},
      {"@COUNTS@",
       roles.size() > 2 ? concat("kEach = 4, kHunted = ", roles.size() - 1, " * kEach") : "kHunted = 4"},
      {"@MASK@", mask},
      {"@LAST@", roles.back()},
      {"@NAME@", name},
      {"@STRUCT@", struct_name(name)},
      {"@PROGRAM@", line.program}};
  write_named_file(code, filled(chosen(kCode, kinds), parts));
  write_named_file(settings, filled(chosen(kSettings + policies, kinds), parts));
  std::string wrote = concat("wrote ", code, " and ", settings);
  const std::filesystem::path headers = include_folder();
  if (!headers.empty() && !std::filesystem::exists(editor)) {
    write_named_file(
        editor,
        concat("# How editors with clangd read .cu files.\nCompileFlags:\n  Add: [-xc++, -std=c++20, \"-I",
               headers.string(), "\"]\n"));
    wrote += ", and " + editor + " for editors";
  }
  print(concat(wrote, "\n\nnext:\n  ", line.program, " train ", code, "\n  ", line.program,
               " play latest --open\n  ", line.program, " check --env ", code, "\n"));
  return 0;
}

}  // namespace wd::cli
