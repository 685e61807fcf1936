// warpdrive.cpp: names and keys of WarpDrive that differ from ours. With them, its run configurations load
// unchanged.
#include <algorithm>
#include <cstdlib>

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
constexpr char kPoolSettings[] = "env: {reset: pool, reset_pool_size: 5, start: random}";

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
  normalize_value: false
  gamma: 0.98
  lr: 0.0001
  gae_lambda: 1
  adam_epsilon: 1e-8
  model: {type: fully_connected, fc_dims: [64, 64], model_ckpt_filepath: "", init_method: default}
saving: {metrics_log_freq: 100, model_params_save_freq: 1000, basedir: /tmp, name: default, tag: experiment}
)";
// Its DDPG learns from its last rollout only, which these settings of a replay memory come close to: as many
// transitions as two rollouts, each of which is learned from once.
constexpr char kDdpgDefaults[] =
    "{to_train: false, gamma: 0.98, lr: 0.0001, critic_lr: 0.0001, clip_grad_norm: true, max_grad_norm: 0.5, "
    "adam_epsilon: 1e-8, tau: 0.05, replay_ratio: 1, learning_starts: 0, noise: 0.2, noise_damping: 0.15, "
    "model: {type: fully_connected, fc_dims: [64, 64], model_ckpt_filepath: \"\", init_method: default}}";
constexpr char kPpoDefaults[] = "{clip_param: 0.01, num_epochs: 1, num_minibatches: 1}";

Node tree_of(const char* text, const Place& place = {"WarpDrive's default"}) {
  Node tree;
  Problems none;
  parse_document(text, place.source, none, tree);
  none.throw_if_any();
  set_place(tree, place);
  return tree;
}

Node scalar(std::string text, const Place& place) {
  return {.kind = Node::Kind::kScalar, .text = std::move(text), .place = place};
}

// Removes what is at a path, and returns it.
std::optional<Node> take(Node& tree, std::string_view path) {
  Node* const found = tree.at(path);
  if (found == nullptr) return std::nullopt;
  Node node = std::move(*found);
  const std::size_t dot = path.rfind('.');
  Node* const map = dot == std::string_view::npos ? &tree : tree.at(path.substr(0, dot));
  std::erase_if(map->entries, [&](const Node::Entry& entry) { return entry.key == path.substr(dot + 1); });
  return node;
}

// Sets one path of the tree if another is given and this one is not.
void imply(Node& tree, const Node* given, std::string_view path, const char* value) {
  if (given != nullptr && tree.at(path) == nullptr) put(tree, path, scalar(value, Place(given->place)));
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

void drop_unused(Node& tree, const std::string& path, std::vector<std::string>& unused) {
  if (const std::optional<Node> node = take(tree, path))
    unused.push_back(path + " (" + node->place.brief() + ")");
}

// A single seed controls everything here: env.seed sets trainer.seed, unless that is given too.
void translate_seed(Node& tree, Problems& problems, std::vector<std::string>& unused) {
  if (tree.at("env.seed") == nullptr) return;
  Places places;
  std::int64_t value = 0;
  Reader(*tree.find("env"), "env", problems, places)("seed", value, TrainerSettings::kSeeds, "");
  if (!places.empty() && tree.at("trainer.seed") != nullptr) return drop_unused(tree, "env.seed", unused);
  Node seed = *take(tree, "env.seed");
  if (!places.empty()) put(tree, "trainer.seed", std::move(seed));
}

// policy_tag_to_agent_id_map: {POLICY: [ids of agents]}, which WarpDrive's Trainer takes as an argument, at
// the top or in the section trainer.
void translate_agents(Node& tree) {
  const std::string name = "policy_tag_to_agent_id_map";
  for (const std::string& path : {name, "trainer." + name}) {
    const Node* const given = tree.at(path);
    if (given == nullptr) continue;
    if (!given->is_map()) return;  // an unknown key, which is reported
    const Node map = *take(tree, path);
    for (const Node::Entry& entry : map.entries) put(tree, "policy." + entry.key + ".agents", entry.value);
    return;
  }
}

// --- DDPG --------------------------------------------------------------------------------------------------

std::optional<double> number_in(const Node& node) {
  char* end = nullptr;
  const double value = std::strtod(node.text.c_str(), &end);
  const bool whole = node.kind == Node::Kind::kScalar && !node.text.empty() && *end == '\0';
  return whole ? std::optional(value) : std::nullopt;
}

// Renames {actor: A, critic: B} below `key` to the two keys.
void split(Node& section, const char* key, const char* actor, const char* critic) {
  const Node* const given = section.find(key);
  if (given == nullptr || !given->is_map()) return;
  Node both = *take(section, key);
  if (std::optional<Node> own = take(both, "actor")) put(section, actor, std::move(*own));
  if (std::optional<Node> own = take(both, "critic")) put(section, critic, std::move(*own));
  if (!both.entries.empty()) put(section, key, std::move(both));  // an unknown key, which is reported
}

// model: {actor: {...}, critic: {...}, model_ckpt_filepath: {...}}. Returns the actor's output_w, by which
// WarpDrive multiplies tanh: here actions are in half-widths of their bounds.
double translate_ddpg_model(Node& model) {
  double width = 1.0;
  if (const std::optional<Node> given = take(model, "actor.output_w"))
    width = std::max(number_in(*given).value_or(1.0), 1e-6);
  for (const auto& [net, dims] : {std::pair("actor", "fc_dims"), std::pair("critic", "critic_dims")}) {
    std::optional<Node> own = take(model, net);
    if (!own || !own->is_map()) continue;
    take(*own, "type");
    if (std::optional<Node> given = take(*own, "fc_dims")) put(model, dims, std::move(*given));
    if (!own->entries.empty()) put(model, net, std::move(*own));
  }
  if (Node* const file = model.find("model_ckpt_filepath"); file != nullptr && file->is_map()) {
    // A weights file has the actor and its critics.
    const std::optional<Node> of_actor = take(*file, "actor"), of_critic = take(*file, "critic");
    if (of_critic && of_critic->text.empty() && of_actor && file->entries.empty()) *file = *of_actor;
  }
  return width;
}

// Reads what only WarpDrive's DDPG has: rates and networks of actor and critic, steps of returns, noise.
void translate_ddpg(Node& tree, Node& policy) {
  split(policy, "lr", "lr", "critic_lr");
  double width = 1.0;
  if (Node* const model = policy.find("model"); model != nullptr && model->is_map())
    width = translate_ddpg_model(*model);
  for (const char* const key : {"normalize_advantage", "normalize_return"}) {
    const Node* const off = policy.find(key);
    if (off != nullptr && (off->text == "false" || off->text == "False")) take(policy, key);
  }
  if (const Node* const steps = tree.at("trainer.n_step")) put(policy, "n_step", *steps);
  const Node* const batch = tree.at("trainer.train_batch_size");
  const Node* const envs = tree.at("trainer.num_envs");
  if (batch != nullptr && policy.find("batch_size") == nullptr) put(policy, "batch_size", *batch);
  if (batch != nullptr && envs != nullptr && policy.find("buffer_size") == nullptr) {
    const Node* const steps = policy.find("n_step");
    const double n = steps == nullptr ? 1.0 : number_in(*steps).value_or(1.0);
    const double entries = 2.0 * number_in(*batch).value_or(0.0) + n * number_in(*envs).value_or(0.0);
    put(policy, "buffer_size", scalar(concat(static_cast<std::int64_t>(entries)), Place(batch->place)));
  }
  if (const Node* const damping = tree.at("sampler.params.damping")) put(policy, "noise_damping", *damping);
  const Node* const stddev = tree.at("sampler.params.stddev");
  const Node* const scale = tree.at("sampler.params.scale");
  if (stddev != nullptr && number_in(*stddev)) {
    const double noise = *number_in(*stddev) * (scale == nullptr ? 1.0 : number_in(*scale).value_or(1.0));
    put(policy, "noise", scalar(concat(noise / width), Place(stddev->place)));
  }
}

// What the policies have read.
void drop_ddpg_keys(Node& tree, std::vector<std::string>& unused) {
  drop_unused(tree, "trainer.evaluator", unused);
  take(tree, "trainer.n_step");
  for (const char* const key : {"damping", "stddev", "scale"}) take(tree, concat("sampler.params.", key));
  for (const char* const path : {"sampler.params", "sampler"})
    if (const Node* const at = tree.at(path); at != nullptr && at->is_map() && at->entries.empty())
      take(tree, path);
}

// WarpDrive's notebooks leave the keys out that only WarpDrive has. They count episodes only, and every
// policy names the file of its first weights, mostly none.
std::optional<std::pair<Place, std::string>> notebook_mark(const Node& tree) {
  const Node* const episodes = tree.at("trainer.num_episodes");
  const Node* const policies = tree.find("policy");
  if (episodes == nullptr || tree.at("trainer.total_steps") != nullptr || policies == nullptr ||
      !policies->is_map() || policies->entries.empty())
    return std::nullopt;
  for (const Node::Entry& entry : policies->entries) {
    const bool says =
        entry.value.find("to_train") != nullptr && entry.value.at("model.model_ckpt_filepath") != nullptr;
    if (!says) return std::nullopt;
  }
  return std::pair(episodes->place,
                   "trainer.num_episodes without total_steps, and "
                   "to_train and model_ckpt_filepath of every policy");
}

}  // namespace

Layer alias_layer(const std::string& name, const Place& place) {
  return {tree_of(name == kPoolAlias ? kPoolSettings : "{}", place)};
}

std::optional<std::pair<Place, std::string>> warpdrive_mark(const Node& tree,
                                                            const std::vector<std::string>& env_fields) {
  using Mark = std::optional<std::pair<Place, std::string>>;
  const auto found = [&](const std::string& path) {
    const Node* const node = tree.at(path);
    return node == nullptr ? Mark() : Mark({node->place, path});
  };
  const Node* const name = tree.find("name");
  if (name != nullptr && canonical_environment(name->text) != name->text)
    return std::pair(name->place, "name: " + name->text);
  if (auto mark = found("trainer.num_gpus")) return mark;
  if (auto mark = found("trainer.env_backend")) return mark;
  if (!contains(env_fields, "seed"))
    if (auto mark = found("env.seed")) return mark;
  return notebook_mark(tree);
}

void fill_with_warpdrives_defaults(Node& tree, std::vector<std::string>& unused) {
  Node defaults = tree_of(kDefaults);
  const Node policy = *take(defaults, "policy"), ppo = tree_of(kPpoDefaults), ddpg = tree_of(kDdpgDefaults);
  fill(tree, defaults);
  Node* const policies = tree.find("policy");
  if (policies == nullptr || !policies->is_map()) return;
  bool has_ddpg = false;
  for (Node::Entry& entry : policies->entries) {
    const Node* const given = entry.value.find("algorithm");
    const std::string algorithm = given != nullptr ? given->text : "";
    if (algorithm == "DDPG") {
      has_ddpg = true;
      translate_ddpg(tree, entry.value);
      fill(entry.value, ddpg);
      continue;
    }
    const Node* const coefficient = algorithm == "REINFORCE" ? entry.value.find("vf_loss_coeff") : nullptr;
    if (coefficient != nullptr)
      unused.push_back("policy." + printable(entry.key) + ".vf_loss_coeff (" + coefficient->place.brief() +
                       ")");
    fill(entry.value, policy);
    if (algorithm == "PPO") fill(entry.value, ppo);
    if (algorithm == "REINFORCE") {
      for (const char* const key : {"vf_loss_coeff", "gae_lambda", "normalize_value"}) take(entry.value, key);
    }
  }
  if (has_ddpg) drop_ddpg_keys(tree, unused);
}

void translate(Node& tree, const std::vector<std::string>& env_fields, Problems& problems,
               std::vector<std::string>& unused) {
  const Node* trainer = tree.find("trainer");
  if (trainer != nullptr && trainer->is_map()) {
    Places places;
    UnusedTrainerKeys keys;
    Reader reader(*trainer, "trainer", problems, places);
    keys.describe(reader);
    for (const std::string& path : names_of(describe_of(keys), "trainer.")) drop_unused(tree, path, unused);
  }
  const bool takes_keys = trainer == nullptr || trainer->is_map() || trainer->kind == Node::Kind::kNull;
  if (takes_keys && !contains(env_fields, "seed")) translate_seed(tree, problems, unused);
  imply(tree, tree.at("trainer.num_episodes"), "trainer.total_steps", "0");
  translate_agents(tree);
  const Node* pool = tree.at("env.reset_pool_size");
  imply(tree, pool != nullptr && pool->text != "0" ? pool : nullptr, "env.reset", "pool");
  imply(tree, tree.at("env.starts"), "env.reset", "given");
}

}  // namespace config

std::string canonical_environment(std::string_view name) {
  for (const config::Alias& alias : config::kAliases) {
    if (name == alias.name) return alias.environment;
  }
  if (is_source_file(name)) return std::filesystem::absolute(name).lexically_normal();
  return std::string(name);
}

}  // namespace wd
