// spec.h: an environment's description of itself: roles, spaces, time limit.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "wd/drawing.h"

namespace wd {

enum class AtTimeLimit { kTerminates, kTruncates };

// How episodes start: drawn anew, one start for all, from a pool of drawn ones, or from a file.
enum class ResetMode : int { kRandom, kFixed, kPool, kGiven, kPlayed };

// How the trajectory buffers store observations. Environments always write floats.
enum class ObservationType { kFloat32, kBfloat16 };
constexpr int bytes_of(ObservationType type) { return type == ObservationType::kFloat32 ? 4 : 2; }

struct ObservationStorage {
  ObservationType type = ObservationType::kFloat32;
  bool as_table = false;  // Spec::table instead of rows; float32 only
};

// Bounds of one continuous component of an action. Either may be infinite.
struct Bounds {
  float low = -1.0f, high = 1.0f;

  bool are_finite() const { return std::isfinite(low) && std::isfinite(high); }
  bool operator==(const Bounds&) const = default;
};

// Either several categorical heads, or a continuous vector; never both.
struct ActionSpace {
  std::vector<int> heads;          // number of choices of each categorical head
  std::vector<std::string> names;  // one word per head or component, for display
  std::vector<Bounds> bounds;      // of each continuous component

  static ActionSpace discrete(std::vector<int> heads, std::vector<std::string> names = {}) {
    return {std::move(heads), std::move(names), {}};
  }
  // A box whose sides differ: box({{-2, 2}, {0, 1}}, {"torque", "brake"}).
  static ActionSpace box(std::vector<Bounds> bounds, std::vector<std::string> names = {}) {
    return {{}, std::move(names), std::move(bounds)};
  }
  static ActionSpace box(int components, float low, float high, std::vector<std::string> names = {}) {
    return box(std::vector<Bounds>(static_cast<std::size_t>(components), {low, high}), std::move(names));
  }
  bool is_continuous() const { return !bounds.empty(); }
  int components() const { return static_cast<int>(bounds.size()); }
  // Whether a component has finite bounds. For such components, policies act in half-widths from the middle,
  // and the environment receives actions within the bounds. Other components are passed on unchanged.
  bool has_bounds() const { return std::ranges::any_of(bounds, &Bounds::are_finite); }
  bool is_bounded() const { return is_continuous() && std::ranges::all_of(bounds, &Bounds::are_finite); }
  // Numbers per action: heads, or components.
  int width() const { return is_continuous() ? components() : static_cast<int>(heads.size()); }
  // Columns of logits: the total number of choices of all heads. 0 for a box.
  int choices() const {
    int sum = 0;
    for (const int n : heads) sum += n;
    return sum;
  }
  // Name of head or component k, or its number if there are no names.
  std::string name(std::size_t k) const { return names.empty() ? std::to_string(k) : names.at(k); }
  bool operator==(const ActionSpace&) const = default;
};

// A named range of the observation row; parts are in order.
struct ObservationPart {
  std::string name;
  int size = 1;

  bool operator==(const ObservationPart&) const = default;
};

// How many things of one kind a network with model.input: entities reads at most; how many lists an
// observation has at most; and how many kinds and further numbers each list.
inline constexpr int kMaxNearestEntities = 16, kMaxEntityLists = 6, kMaxEntityKinds = 4,
                     kMaxEntityFeatures = 8;

// One number of each thing in a list: entry `first + k * step` of a part of the observation is that of thing
// k.
struct EntityColumn {
  std::string part;
  int first = 0, step = 1;

  bool is_set() const { return !part.empty(); }
  bool operator==(const EntityColumn&) const = default;
};

// Things that an agent observes in the same way, such as the other agents, or landmarks.
struct EntityList {
  std::string name;
  int count = 0;                            // may be 0
  EntityColumn x, y;                        // position relative to the observer's
  EntityColumn heading = {};                // direction relative to the observer's, in turns
  EntityColumn kind = {};                   // 0 .. kinds - 1: a network reads the nearest of each kind
  int kinds = 1;                            // 1: all are of one kind, and there is no such column
  EntityColumn presence = {};               // 0: this thing does not exist, or is out of the game
  std::vector<EntityColumn> features = {};  // further numbers

  bool operator==(const EntityList&) const = default;
};

// How to read an observation as lists of things, for networks with model.input: entities. Entries of the
// observation that no list names are the observer's own.
struct Entities {
  std::vector<EntityList> lists = {};
  // Cosine and sine of the observer's heading: positions are then turned into its own frame.
  EntityColumn heading_cos = {}, heading_sin = {};

  bool operator==(const Entities&) const = default;
};

// Numbers that describe each choice of an action, for networks with model.input: choices, which compute the
// value of a choice from the state and its description. The choices of all heads follow each other.
struct ChoiceFeatures {
  int size = 0;                   // F, numbers of each choice; 0: choices are not described
  std::vector<float> fixed = {};  // [choices, F]: they are the same in every state
  // Otherwise: the entry of the observation with which the description of choice 0 begins; those of the
  // others follow, F apart. The other entries of the observation are the state.
  int first = -1;

  bool are_fixed() const { return !fixed.empty(); }
  bool operator==(const ChoiceFeatures&) const = default;
};

// Agents with the same spaces. Agents are numbered role by role, in the order of Spec::roles.
struct Role {
  std::string name;
  int count = 1;
  std::vector<ObservationPart> observation;
  ActionSpace action;
  bool action_mask = false;  // observe() also writes which choices are legal
  Entities entities = {};    // of the observation
  ChoiceFeatures choice_features = {};
  // Agents that have left the game go on being paid and learn from it: their rows count until the episode
  // ends. Otherwise their later rewards are dropped (docs/design/0029-rewards-after-leaving.md).
  bool paid_after_leaving = false;

  int observation_size() const {
    int size = 0;
    for (const ObservationPart& part : observation) size += part.size;
    return size;
  }
};

// A state field whose value at the end of an episode is reported: per replica, or as the mean over a role's
// agents.
struct Statistic {
  std::string field;
  std::string help;
  std::string role;  // empty: the field is per replica
};

// If every agent sees all others, rows follow from one table of all agents. The row of agent i holds, for
// every feature f and every other agent j in order, v[j, f] - v[i, f] (v[j, f] from feature `relative` on),
// then the entries that only i knows. wd::observe_others() writes either form.
struct ObservationTable {
  int features = 0;  // per agent; 0: there is no table
  int relative = 0;  // the first `relative` features are relative to the observer's own
  int own = 0;       // entries that only the agent itself knows

  int columns() const { return features + own; }
  int row_size(int agents) const { return features * (agents - 1) + own; }
};

// Numbers that the environment writes in every step besides observations (wd::Streams): of each agent, as an
// image that it sees, or of each replica, as a state of the whole game. Networks read them by name
// (model.reads, model.critic_reads); recordings keep all of them. The observation is the stream that every
// environment has.
struct StreamSpec {
  enum Of { kAgent, kReplica };
  enum Type { kFloat32, kUint8 };

  std::string name;
  Of of = kAgent;
  std::vector<int> shape = {};  // of one row: empty: one number
  Type type = kFloat32;

  int size() const {
    int numbers = 1;
    for (const int n : shape) numbers *= n;
    return numbers;
  }
  int row_bytes() const { return size() * (type == kFloat32 ? static_cast<int>(sizeof(float)) : 1); }
  bool operator==(const StreamSpec&) const = default;
};
inline constexpr int kMaxStreams = 4;

// Two agents move in turn, and one wins what the other loses. The agent that is not on turn has one legal
// choice in each head, which is `wait` in the first; for the one on turn, `wait` is not legal. So one entry
// of a mask says who is on turn, which the number of legal choices does not: a move may be forced. If one
// policy acts for both agents, its returns are those of who is on turn (kernels/returns.h).
struct ZeroSumTurns {
  int wait = -1;  // a choice of the first head; -1: the game is not one of these

  bool are_declared() const { return wait != -1; }
};

struct Spec {
  std::vector<Role> roles;
  int time_limit = 0;  // steps [1, 2^24)
  AtTimeLimit at_time_limit = AtTimeLimit::kTruncates;
  std::vector<Statistic> statistics = {};
  ObservationTable table = {};  // of all roles
  std::vector<StreamSpec> streams = {};
  Drawing drawing = {};
  ZeroSumTurns zero_sum_turns = {};

  int num_agents() const {
    int agents = 0;
    for (const Role& role : roles) agents += role.count;
    return agents;
  }
};

}  // namespace wd
