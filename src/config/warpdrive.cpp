// warpdrive.cpp: names and keys of WarpDrive that differ from ours. With them, its run configurations load
// unchanged.
#include <algorithm>

#include "src/base/join.h"
#include "src/config/layers.h"

namespace wd {
namespace config {
namespace {

struct Alias {
  const char* name;
  const char* environment;
};

constexpr Alias kAliases[] = {
    {"single_cartpole", "cartpole"},
    {"single_pendulum", "pendulum"},
    {"single_acrobot", "acrobot"},
    {"single_mountain_car", "mountain_car"},
    {"single_continuous_mountain_car", "continuous_mountain_car"},
    {"tag_gridworld_with_reset_pool", "tag_gridworld"},
};

constexpr char kPoolAlias[] = "tag_gridworld_with_reset_pool";
constexpr char kPoolSize[] = "5";  // WarpDrive's value

// The defaults of WarpDrive 2.7.1: its run_configs/default_configs.yaml, and behavior of its classes that
// only here is a setting (torch's initial weights and Adam; one PPO step per rollout, with returns that
// bootstrap only at its end).
constexpr char kDefaults[] = R"(
trainer: {num_envs: 10, num_episodes: 10000, train_batch_size: 10000}
policy:
  to_train: false
  algorithm: A2C
  vf_loss_coeff: 0.01
  entropy_coeff: 0.05
  clip_grad_norm: true
  max_grad_norm: 0.5
  normalize_advantage: false
  normalize_return: false
  gamma: 0.98
  lr: 0.0001
  gae_lambda: 1
  adam_epsilon: 1e-8
  model: {type: fully_connected, fc_dims: [64, 64], model_ckpt_filepath: "", init_method: default}
saving: {metrics_log_freq: 100, model_params_save_freq: 1000, basedir: /tmp, name: default, tag: experiment}
)";
constexpr char kPpoDefaults[] = "{clip_param: 0.01, num_epochs: 1, num_minibatches: 1}";

Node defaults_of(const char* text) {
  const Place place{"WarpDrive's default", 0, 0};
  Node tree;
  Problems none;
  parse_document(text, place.source, none, tree);
  none.throw_if_any();
  set_place(tree, place);
  return tree;
}

// Adds to the tree what only the defaults contain.
void fill(Node& tree, const Node& defaults) {
  if (tree.kind == Node::Kind::kNull) tree.kind = Node::Kind::kMap;
  if (!tree.is_map()) return;
  for (const Node::Entry& entry : defaults.entries) {
    Node* const own = tree.find(entry.key);
    if (own == nullptr) {
      tree.entries.push_back(entry);
    } else if (entry.value.is_map()) {
      fill(*own, entry.value);
    }
  }
}

Node scalar(std::string text, const Place& place) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.text = std::move(text);
  node.place = place;
  return node;
}

Node* find_path(Node& tree, const char* section, const char* key) {
  Node* const at = tree.find(section);
  return at != nullptr && at->is_map() ? at->find(key) : nullptr;
}

void remove(Node& tree, const char* section, const char* key) {
  std::erase_if(tree.find(section)->entries, [&](const Node::Entry& entry) { return entry.key == key; });
}

// Sets one path of the tree if another is given and this one is not.
void imply(Node& tree, const Node* given, const char* section, const char* key, const char* value) {
  if (given == nullptr || find_path(tree, section, key) != nullptr) return;
  put(tree, std::string(section) + "." + key, scalar(value, Place(given->place)));
}

// Trainer keys that are checked and have no effect.
struct UnusedTrainerKeys {
  int num_gpus = 1;
  int env_backend = 0;
  double neg_pos_env_ratio = -1.0;
  void describe(Fields& field) {
    field("num_gpus", num_gpus, {1, 1024}, "");
    field.choice("env_backend", env_backend, {"pycuda", "numba", "cpu"}, "");
    // A2C of WarpDrive learns from at most this many replicas without an end by the rules for each with one.
    field("neg_pos_env_ratio", neg_pos_env_ratio, {-1.0, 1e9}, "");
  }
};

void drop_unused(Node& tree, const char* section, const char* key, std::vector<std::string>& unused) {
  const Node* node = find_path(tree, section, key);
  if (node == nullptr) return;
  unused.push_back(std::string(section) + "." + key + " (" + node->place.brief() + ")");
  remove(tree, section, key);
}

// A single seed controls everything here: env.seed sets trainer.seed, unless that is given too.
void translate_seed(Node& tree, Problems& problems, std::vector<std::string>& unused) {
  const Node* seed = find_path(tree, "env", "seed");
  if (seed == nullptr) return;
  Places places;
  std::int64_t value = 0;
  Reader(*tree.find("env"), "env", problems, places)("seed", value, TrainerSettings::kSeeds, "");
  if (places.empty()) return remove(tree, "env", "seed");
  if (find_path(tree, "trainer", "seed") != nullptr) return drop_unused(tree, "env", "seed", unused);
  Node moved = *seed;
  remove(tree, "env", "seed");
  put(tree, "trainer.seed", std::move(moved));
}

}  // namespace

Layer alias_layer(const std::string& name, const Place& place) {
  Layer layer;
  layer.tree.kind = Node::Kind::kMap;
  if (name != kPoolAlias) return layer;
  put(layer.tree, "env.reset", scalar("pool", place));
  put(layer.tree, "env.reset_pool_size", scalar(kPoolSize, place));
  put(layer.tree, "env.start", scalar("random", place));
  return layer;
}

std::optional<std::pair<Place, std::string>> warpdrive_mark(const Node& tree,
                                                            const std::vector<std::string>& env_fields) {
  const auto found = [&](const char* section,
                         const char* key) -> std::optional<std::pair<Place, std::string>> {
    const Node* const at = tree.find(section);
    const Node* const node = at != nullptr && at->is_map() ? at->find(key) : nullptr;
    if (node == nullptr) return std::nullopt;
    return std::pair(node->place, std::string(section) + "." + key);
  };
  const Node* const name = tree.find("name");
  if (name != nullptr && canonical_environment(name->text) != name->text)
    return std::pair(name->place, "name: " + name->text);
  if (auto mark = found("trainer", "num_gpus")) return mark;
  if (auto mark = found("trainer", "env_backend")) return mark;
  return contains(env_fields, "seed") ? std::nullopt : found("env", "seed");
}

void fill_with_warpdrives_defaults(Node& tree, std::vector<std::string>& unused) {
  Node defaults = defaults_of(kDefaults);
  const Node policy = *defaults.find("policy"), ppo = defaults_of(kPpoDefaults);
  std::erase_if(defaults.entries, [](const Node::Entry& entry) { return entry.key == "policy"; });
  fill(tree, defaults);
  Node* const policies = tree.find("policy");
  if (policies == nullptr || !policies->is_map()) return;
  for (Node::Entry& entry : policies->entries) {
    const Node* const given = entry.value.is_map() ? entry.value.find("algorithm") : nullptr;
    const std::string algorithm = given != nullptr ? given->text : "";
    const Node* const coefficient = algorithm == "REINFORCE" ? entry.value.find("vf_loss_coeff") : nullptr;
    if (coefficient != nullptr)
      unused.push_back("policy." + printable(entry.key) + ".vf_loss_coeff (" + coefficient->place.brief() +
                       ")");
    fill(entry.value, policy);
    if (algorithm == "PPO") fill(entry.value, ppo);
    if (algorithm == "REINFORCE") {
      std::erase_if(entry.value.entries, [](const Node::Entry& own) {
        return own.key == "vf_loss_coeff" || own.key == "gae_lambda";
      });
    }
  }
}

void translate(Node& tree, const std::vector<std::string>& env_fields, Problems& problems,
               std::vector<std::string>& unused) {
  const Node* trainer = tree.find("trainer");
  if (trainer != nullptr && trainer->is_map()) {
    Places places;
    UnusedTrainerKeys keys;
    Reader reader(*trainer, "trainer", problems, places);
    keys.describe(reader);
    drop_unused(tree, "trainer", "num_gpus", unused);
    drop_unused(tree, "trainer", "env_backend", unused);
    drop_unused(tree, "trainer", "neg_pos_env_ratio", unused);
  }
  const Node* section = tree.find("trainer");
  const bool sections_are_maps =
      section == nullptr || section->is_map() || section->kind == Node::Kind::kNull;
  if (sections_are_maps && !contains(env_fields, "seed")) translate_seed(tree, problems, unused);
  imply(tree, find_path(tree, "trainer", "num_episodes"), "trainer", "total_steps", "0");
  const Node* pool = find_path(tree, "env", "reset_pool_size");
  imply(tree, pool != nullptr && pool->text != "0" ? pool : nullptr, "env", "reset", "pool");
  imply(tree, find_path(tree, "env", "starts"), "env", "reset", "given");
}

}  // namespace config

std::string canonical_environment(std::string_view name) {
  for (const config::Alias& alias : config::kAliases) {
    if (name == alias.name) return alias.environment;
  }
  return std::string(name);
}

}  // namespace wd
