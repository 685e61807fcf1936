// kernels_bench.cpp: each kernel on its own, at the sizes of two games, on the CPU and on the GPU if there is
// one. Kernels of rows also run with the rows of a chunk (16,384 and 65,536) and of a step of the headline
// training (204,800: 2,048 replicas of 100 runners), on the CPU with the fewest.
//
//   build/tests/kernels_bench --benchmark_filter=loss
//
// bytes_per_second counts every array that a kernel reads or writes once. Items are rows, units, steps of
// episodes or parameters.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <numeric>
#include <span>
#include <string_view>

#include "kernels/adam.h"
#include "kernels/assign_minibatches.h"
#include "kernels/cell.h"
#include "kernels/chain.h"
#include "kernels/entities.h"
#include "kernels/episodes.h"
#include "kernels/finite.h"
#include "kernels/gather.h"
#include "kernels/layer_norm.h"
#include "kernels/loss.h"
#include "kernels/matmul.h"
#include "kernels/perceptron.h"
#include "kernels/reduce.h"
#include "kernels/returns.h"
#include "kernels/sample.h"
#include "kernels/table_layer.h"
#include "src/device/device.h"
#include "src/nets/linear.h"
#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/error.h"

namespace wd {
namespace {

// The sizes of one policy's part of a rollout.
struct Game {
  const char* name;
  int steps, replicas, agents;  // T, E, A
  std::vector<int> heads;
  int inputs;
  std::int64_t parameters;

  std::int64_t step_rows() const { return std::int64_t{replicas} * agents; }
  std::int64_t rows() const { return steps * step_rows(); }
  std::int64_t units() const { return std::int64_t{steps} * replicas; }
  ActionLayout layout() const {
    ActionLayout layout{.num_heads = static_cast<int>(heads.size())};
    std::ranges::copy(heads, layout.head_size);
    return layout;
  }
};

// tag_continuous stands for its runners: 5 taggers and 100 runners, full observation, 2 x 256 units.
const Game kGames[] = {{"cartpole", 32, 256, 1, {2}, 4, 4'675},
                       {"tag_continuous", 20, 100, 100, {21, 21}, 729, 263'723}};

// Owns the arrays of a kernel and counts the bytes to move each of them once.
class Arrays {
 public:
  explicit Arrays(Device device) : device_(device) {}

  float* floats(std::int64_t n) { return make<float>(at::randn({n}, options(at::kFloat))); }
  double* doubles(std::int64_t n) { return make<double>(at::zeros({n}, options(at::kDouble))); }
  std::uint8_t* flags(std::int64_t n, double share) {
    return make<std::uint8_t>(at::rand({n}, options(at::kFloat)).lt(share).to(at::kByte));
  }
  // Random integers in [0, end).
  std::int32_t* choices(std::int64_t n, int end) {
    return make<std::int32_t>(at::randint(end, {n}, options(at::kInt)));
  }
  std::int64_t* indices(std::int64_t n, std::int64_t end) {
    return make<std::int64_t>(at::randint(end, {n}, options(at::kLong)));
  }
  float* zeros(std::int64_t n) { return make<float>(at::zeros({n}, options(at::kFloat))); }
  std::int32_t* of(const std::vector<std::int32_t>& values) {
    return make<std::int32_t>(at::tensor(values, at::kInt).to(options(at::kInt).device()));
  }
  std::int64_t bytes() const { return bytes_; }
  at::TensorOptions there(at::ScalarType type) const { return options(type); }
  float* own(at::Tensor tensor) { return make<float>(std::move(tensor)); }
  void moved_again(std::int64_t bytes) { bytes_ += bytes; }

 private:
  at::TensorOptions options(at::ScalarType type) const {
    return at::TensorOptions().dtype(type).device(device_.is_cuda() ? at::kCUDA : at::kCPU);
  }
  template <typename T>
  T* make(at::Tensor tensor) {
    bytes_ += static_cast<std::int64_t>(tensor.nbytes());
    return static_cast<T*>(tensors_.emplace_back(std::move(tensor)).data_ptr());
  }

  Device device_;
  std::vector<at::Tensor> tensors_;
  std::int64_t bytes_ = 0;
};

// Times calls of a kernel; on CUDA, many calls between two synchronizations.
template <typename Call>
void run(benchmark::State& state, Device device, std::int64_t items, std::int64_t bytes, Call call) {
  const Queue queue = current_queue(device);
  const int calls = device.is_cuda() ? 100 : 1;
  call(queue);
  synchronize(device);
  for (auto _ : state) {
    for (int k = 0; k < calls; ++k) call(queue);
    synchronize(device);
  }
  const auto total = static_cast<std::int64_t>(state.iterations()) * calls;
  state.SetItemsProcessed(total * items);
  state.SetBytesProcessed(total * bytes);
}

// With `rows`, of the headline training's outputs: rows begin at multiples of 16 bytes.
std::int64_t output_stride(const ActionLayout& layout) { return (layout.columns() + 1 + 3) / 4 * 4; }

void bench_sample(benchmark::State& state, const Game& game, Device device, std::int64_t rows) {
  Arrays arrays(device);
  SampleArgs args;
  args.rows = rows;
  args.num_agents = game.agents;
  args.layout = game.layout();
  const std::int64_t stride = output_stride(args.layout);
  args.networks.output = {arrays.floats(rows * stride), stride};
  args.networks.value = args.networks.output.column(args.layout.columns());
  args.key = RandomKey::of(1, RandomUse::kAction);
  args.action = arrays.choices(rows * args.layout.action_width(), 1);
  args.log_prob = arrays.floats(rows);
  args.value = arrays.floats(rows);
  run(state, device, rows, arrays.bytes(), [&](Queue queue) {
    ++args.step;
    sample(queue, args);
  });
}

void bench_loss(benchmark::State& state, const Game& game, Device device, std::int64_t rows) {
  Arrays arrays(device);
  LossArgs args;
  args.rows = rows;
  args.layout = game.layout();
  const int columns = args.layout.columns();
  args.ppo = true;
  const std::int64_t stride = output_stride(args.layout);
  args.networks.output = {arrays.floats(rows * stride), stride};
  args.networks.value = args.networks.output.column(columns);
  args.action = arrays.choices(rows * args.layout.action_width(), game.heads[0]);
  args.old_log_prob = arrays.floats(rows);
  args.old_value = arrays.floats(rows);
  args.advantage = arrays.floats(rows);
  args.target = arrays.floats(rows);
  args.mask = arrays.flags(rows, 0.9);
  args.output_grad = {arrays.floats(rows * stride), stride};
  args.value_grad = args.output_grad.column(columns);
  args.row_sums = arrays.floats(kNumLossSums * rows);
  run(state, device, rows, arrays.bytes(), [&](Queue queue) { loss(queue, args); });
}

void bench_returns(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  const std::int64_t rows = game.rows(), more = rows + game.step_rows(), units = game.units();
  ReturnsArgs args;
  args.steps = game.steps;
  args.num_envs = game.replicas;
  args.num_agents = game.agents;
  args.reward = arrays.floats(rows);
  args.value = arrays.floats(more);
  args.agent_terminated = arrays.flags(rows, 0.01);
  args.terminated = arrays.flags(units, 0.01);
  args.truncated = arrays.flags(units, 0.01);
  args.reset_step = arrays.flags(units, 0.01);
  args.advantage = arrays.floats(rows);
  args.target = arrays.floats(rows);
  args.mask = arrays.flags(rows, 0.9);
  run(state, device, rows, arrays.bytes(), [&](Queue queue) { returns(queue, args); });
}

void bench_assign_minibatches(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  AssignMinibatchesArgs args;
  args.steps = game.steps;
  args.num_envs = game.replicas;
  args.count = 4;
  args.capacity = (game.units() + args.count - 1) / args.count;
  args.key = RandomKey::of(1, RandomUse::kShuffle);
  args.order = arrays.indices(args.count * args.capacity, 1);
  run(state, device, game.units(), arrays.bytes(), [&](Queue queue) { assign_minibatches(queue, args); });
}

void bench_gather(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  const std::int64_t row = game.agents * ((game.inputs + 3) / 4 * 4) * 4, taken = game.units() / 4;
  GatherArgs args;
  args.rows = taken;
  args.index = arrays.indices(taken, game.units());
  float* const to = arrays.floats(taken * row / 4);
  arrays.moved_again(taken * row);
  Arrays source(device);
  args.add(source.floats(game.units() * row / 4), to, row);
  run(state, device, taken, arrays.bytes(), [&](Queue queue) { gather(queue, args); });
}

void bench_moments(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  const float* const x = arrays.floats(game.rows());
  const std::uint8_t* const mask = arrays.flags(game.rows(), 0.9);
  double* const partial = arrays.doubles(3 * num_chunks(game.rows()));
  double* const out = arrays.doubles(3);
  run(state, device, game.rows(), arrays.bytes(),
      [&](Queue queue) { masked_moments(queue, x, mask, game.rows(), partial, out); });
}

void bench_squares(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  const float* const x = arrays.floats(game.parameters);
  double* const partial = arrays.doubles(num_chunks(game.parameters));
  double* const out = arrays.doubles(1);
  run(state, device, game.parameters, arrays.bytes(),
      [&](Queue queue) { sum_of_squares(queue, x, game.parameters, partial, out); });
}

void bench_episodes(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  EpisodesArgs args;
  args.steps = game.steps;
  args.num_envs = game.replicas;
  args.num_agents = game.agents;
  args.reward = arrays.floats(game.rows());
  args.terminated = arrays.flags(game.units(), 0.01);
  args.truncated = arrays.flags(game.units(), 0.01);
  args.reset_step = arrays.flags(game.units(), 0.01);
  args.running_return = arrays.floats(game.replicas);
  args.running_length = arrays.choices(game.replicas, 1);
  args.finished_return = arrays.floats(game.units());
  args.finished_length = arrays.choices(game.units(), 1);
  run(state, device, game.units(), arrays.bytes(), [&](Queue queue) { episodes(queue, args); });
}

void bench_adam(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  AdamArgs args;
  const std::int64_t n = args.n = game.parameters;
  args.gradient = arrays.floats(n);
  args.parameter = arrays.floats(n);
  args.first_moment = arrays.floats(n);
  args.second_moment = arrays.floats(n);
  // Parameters and moments are also written; the gradient is read twice because of its norm.
  arrays.moved_again((3 + 1) * n * 4);
  Arrays small(device);
  const auto doubles = at::TensorOptions().dtype(at::kDouble).device(device.is_cuda() ? at::kCUDA : at::kCPU);
  const at::Tensor losses = at::zeros({kLossRecordNumbers}, doubles), totals = at::ones({1}, doubles);
  args.losses = {.record = reinterpret_cast<LossRecord*>(losses.mutable_data_ptr<double>()),
                 .totals = totals.const_data_ptr<double>(),
                 .num_sums = 1};
  const at::Tensor steps = at::zeros({1}, doubles.dtype(at::kLong));
  args.steps = steps.mutable_data_ptr<std::int64_t>();
  args.partial = small.doubles(num_chunks(n));
  const at::Tensor record = at::zeros({kStepNumbers}, at::kDouble);
  auto* const numbers = reinterpret_cast<StepRecord*>(record.mutable_data_ptr<double>());
  numbers->lr = 1e-4;
  numbers->max_grad_norm = 1.0;
  const at::Tensor there = record.to(device.is_cuda() ? at::kCUDA : at::kCPU);
  args.record = reinterpret_cast<StepRecord*>(there.mutable_data_ptr<double>());
  run(state, device, n, arrays.bytes(), [&](Queue queue) { adam(queue, args); });
}

// The first layer for a block of 512 rows, on one CPU thread, as in one lane.
void bench_product(benchmark::State& state, const Game& game, Device device) {
  Arrays arrays(device);
  constexpr std::int64_t kRows = 512, kOutputs = 64;
  const MatmulArgs args{.m = kRows,
                        .n = kOutputs,
                        .k = game.inputs,
                        .a = {arrays.floats(kRows * game.inputs), game.inputs, 1},
                        .b = ConstMatrix{arrays.floats(kOutputs * game.inputs), game.inputs, 1}.transposed(),
                        .c = arrays.floats(kRows * kOutputs),
                        .c_row = kOutputs};
  run(state, device, kRows, arrays.bytes(), [&](Queue) { matmul(args); });
  state.counters["FLOP/s"] =
      benchmark::Counter(2.0 * kRows * kOutputs * game.inputs * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

// The first layer of 256 units over tables of 5 taggers and 100 runners, for the runners of a chunk. On the
// CPU it uses one thread.
TableLayerArgs table_layer(Arrays& arrays, Device device) {
  std::vector<std::int32_t> agent(100), upto(105);
  std::iota(agent.begin(), agent.end(), 5);
  for (int k = 0; k < 105; ++k) upto[static_cast<std::size_t>(k)] = std::max(k - 4, 0);
  TableLayerArgs args;
  args.shape.table = {.features = 7, .relative = 5, .own = 1};
  args.shape.agents = 105;
  args.shape.rows = 100;
  args.shape.width = 256;
  args.shape.agent = arrays.of(agent);
  args.shape.upto = arrays.of(upto);
  args.shape.parts = device.is_cuda() ? 16 : 1;
  args.units = device.is_cuda() ? 655 : 5;
  args.table_stride = 8;
  args.y_stride = 256;
  args.table = arrays.floats(args.units * 105 * 8);
  args.weight = arrays.floats(args.shape.weight_rows() * 256);
  args.y = arrays.floats(args.units * 100 * 256);
  args.gradient = arrays.floats(args.shape.gradient_rows() * 256);
  return args;
}

void bench_table_forward(benchmark::State& state, const Game&, Device device) {
  Arrays arrays(device);
  const TableLayerArgs args = table_layer(arrays, device);
  run(state, device, args.units * 100, arrays.bytes(), [&](Queue queue) { table_forward(queue, args); });
}

// On a CPU, the gradient of y grows from call to call, because its running sums replace it; it begins at
// zero.
void bench_table_backward(benchmark::State& state, const Game&, Device device) {
  Arrays arrays(device);
  TableLayerArgs args = table_layer(arrays, device);
  args.y = arrays.zeros(args.units * 100 * 256);
  run(state, device, args.units * 100, arrays.bytes(), [&](Queue queue) { table_backward(queue, args); });
}

// The same for all replicas of a step, in bfloat16 on a GPU: in blocks of agents.
void bench_table_blocks(benchmark::State& state, Device device, bool backward) {
  Arrays arrays(device);
  TableLayerArgs args = table_layer(arrays, device);
  TableShape& shape = args.shape;
  shape.row_ranges = shape.ranges();
  shape.parts = 8;
  args.units = 2048;
  const auto halves = [&](std::int64_t n) {
    return reinterpret_cast<std::uint16_t*>(arrays.own(at::randn({n}, arrays.there(at::kBFloat16))));
  };
  args.table = arrays.floats(args.units * 105 * 8);
  args.y_halves = halves(args.units * 100 * 256);
  args.words = reinterpret_cast<std::uint32_t*>(halves(2 * shape.words()));
  args.sums = arrays.floats(args.units * shape.row_ranges * shape.sum_stride());
  args.gradient = arrays.floats(shape.gradient_rows() * 256);
  const std::int64_t bytes = args.units * (100 * 512 + (backward ? 2 : 0) * 4 * shape.row_ranges * 256);
  run(state, device, args.units * 100, bytes,
      [&](Queue queue) { backward ? table_backward(queue, args) : table_forward(queue, args); });
}

// The backward pass of the shipped tag game's perceptron in bfloat16 on a GPU.
void bench_perceptron(benchmark::State& state, Device device, std::int64_t rows) {
  constexpr int kInputs = 48, kOutputs = 43, kWidth = PerceptronShape::kWidth;
  Arrays arrays(device);
  const auto halves = [&](std::int64_t n) {
    return reinterpret_cast<std::uint16_t*>(arrays.own(at::randn({n}, arrays.there(at::kBFloat16))));
  };
  PerceptronBackwardArgs args;
  args.shape = {.inputs = kInputs, .outputs = kOutputs};
  args.rows = rows;
  args.x = {halves(rows * kInputs), kInputs};
  args.first = halves(rows * kWidth);
  args.second = halves(rows * kWidth);
  args.grad = {arrays.floats(rows * 44), 44};
  const std::int64_t bytes = arrays.bytes();
  args.weight = halves(kWidth * kWidth);
  args.output_weight = halves(kOutputs * kWidth);
  args.gradient = arrays.floats(args.shape.begin(3));
  args.parts = arrays.floats(PerceptronShape::kMaxParts * args.shape.begin(3));
  run(state, device, rows, bytes, [&](Queue queue) { cuda::perceptron_backward(queue.stream, args); });
}

// The gradient of an output layer's weights by cuBLASLt, in bfloat16: whether 48 outputs, whose rows begin at
// multiples of 32 bytes, take another kernel than 43.
void bench_output_weights(benchmark::State& state, Device device, std::int64_t rows, std::int64_t outputs) {
  const Arrays arrays(device);
  const at::TensorOptions halves = arrays.there(at::kBFloat16);
  const auto linear = make_gpu_linear(halves.device(), false);
  const at::Tensor grad = at::randn({rows, 48}, halves).narrow(1, 0, outputs),
                   x = at::randn({rows, 256}, halves);
  at::Tensor sums = at::zeros({outputs, 256}, halves.dtype(at::kFloat));
  run(state, device, rows, rows * (96 + 512), [&](Queue) { linear->backward_weight(grad, x, sums, false); });
}

// The search of a step's observations, in float32 or bfloat16.
void bench_search(benchmark::State& state, Device device, std::int64_t rows, bool bfloat16) {
  Arrays arrays(device);
  const std::int64_t n = rows * 736;
  const FloatArray x{arrays.zeros(bfloat16 ? n / 2 : n), n, bfloat16};
  Arrays small(device);
  std::int64_t* const first = small.indices(1, 1);
  run(state, device, n, arrays.bytes(), [&](Queue queue) { first_not_finite(queue, x, first); });
}

// The three nearest taggers and runners, of the runners of units of 105 agents that know their headings.
void bench_entities(benchmark::State& state, Device device, std::int64_t rows) {
  constexpr int kAgents = 105, kFeatures = 7, kOwn = 6, kRows = 100;
  Arrays arrays(device);
  std::vector<std::int32_t> agent(kRows);
  std::iota(agent.begin(), agent.end(), kAgents - kRows);
  EntitiesArgs args;
  EntityShape& shape = args.shape;
  shape.num_lists = 1;
  shape.nearest = 3;
  shape.half_distance = 0.05f;
  EntityListShape& list = shape.list[0];
  list.count = kAgents - 1;
  list.kinds = list.num_features = 2;
  list.x = {0, 1, true};
  list.y = {1, 1, true};
  list.feature[0] = {2, 1, false};
  list.feature[1] = {3, 1, false};
  list.heading = {4, 1, false};
  list.kind = {5, 1, false};
  list.presence = {6, 1, false};
  shape.num_own = 1;
  shape.own_begin[0] = kFeatures;
  shape.own_count[0] = kOwn;
  shape.heading_cos = kFeatures + 1;
  shape.heading_sin = kFeatures + 2;
  const std::int64_t units = rows / kRows;
  args.rows = units * kRows;
  args.source = {.stride = kFeatures + kOwn, .agents = kAgents, .rows_per_unit = kRows};
  args.source.agent = arrays.of(agent);
  at::Tensor table =
      at::randn({units * kAgents, args.source.stride}, at::kFloat).mul_(0.3f).to(arrays.there(at::kFloat));
  table.select(1, 5).copy_(at::randint(2, {units * kAgents}, arrays.there(at::kFloat)));  // kinds
  table.select(1, 6).fill_(1.0f);                                                         // all present
  args.source.floats = arrays.own(table);
  const std::int64_t width = (shape.width() + 3) / 4 * 4;
  args.features = {arrays.floats(args.rows * width), width};
  args.found = arrays.choices(args.rows * shape.slots(), 1);
  run(state, device, args.rows, arrays.bytes(), [&](Queue queue) { entities(queue, args); });
}

// The normalization of a hidden layer of 256 units.
void bench_layer_norm(benchmark::State& state, Device device, std::int64_t rows, bool bfloat16) {
  constexpr int kWidth = 256;
  Arrays arrays(device);
  LayerNormArgs args{.rows = rows, .stride = kWidth, .width = kWidth};
  args.scale = arrays.floats(kWidth);
  args.shift = arrays.floats(kWidth);
  args.normalized = arrays.floats(rows * kWidth);
  arrays.moved_again(rows * kWidth * 4);
  args.inverse_std = arrays.floats(rows);
  float* const y = arrays.zeros(bfloat16 ? rows * kWidth / 2 : rows * kWidth);
  if (bfloat16) {
    args.y.halves = reinterpret_cast<std::uint16_t*>(y);
  } else {
    args.y.floats = y;
  }
  run(state, device, rows, arrays.bytes(), [&](Queue queue) { layer_norm(queue, args); });
}

// Forward and backward over 32 sequences of 128 steps, 64 units, with restarts in 2 % of the
// rows. The gradients of one pass are the input of the next one.
void bench_cell(benchmark::State& state, Device device, CellKind kind) {
  Arrays arrays(device);
  const CellShape shape{kind, 64, 32, 128};
  const std::int64_t units = shape.sequences * shape.width, n = shape.rows() * shape.width,
                     gates = std::int64_t{shape.gates()} * shape.width;
  const auto numbers = [&](std::int64_t count) {
    return arrays.own(at::randn({count}, arrays.there(at::kFloat)).mul_(0.1));
  };
  CellArgs forward{.shape = shape, .rows = {numbers(n * shape.gates()), gates}};
  arrays.moved_again(n * shape.gates() * 4);
  CellBackwardArgs backward{.shape = shape, .rows = forward.rows};
  if (shape.has_products()) {
    forward.kept = backward.kept = arrays.zeros(n);
    forward.weight = numbers(gates * shape.width);
    forward.bias = numbers(gates);
    forward.previous = arrays.zeros(n);
    forward.products = arrays.zeros(shape.sequences * gates);
    backward.weight = numbers(gates * shape.width);
  }
  forward.state = {arrays.zeros(units * shape.states()), shape.states() * shape.width};
  forward.restarted = arrays.flags(shape.rows(), 0.02);
  forward.output = arrays.zeros(n);
  backward.state = forward.state;
  backward.restarted = forward.restarted;
  backward.previous = forward.previous;
  backward.output_grad = numbers(n);
  backward.state_grad = arrays.zeros(units * shape.states());
  run(state, device, shape.rows(), arrays.bytes(), [&](Queue queue) {
    cell_forward(queue, forward);
    cell_backward(queue, backward);
  });
}

enum class Last { kForward, kBackward, kApart };

// The last two layers of 256 and 43 units in bfloat16 on a GPU: as a chain, or the gradients' two products
// apart.
void bench_chain(benchmark::State& state, Device device, std::int64_t rows, Last what) {
  constexpr int kWidth = 256, kOutputs = 43, kStride = 48;
  Arrays arrays(device);
  const auto halves = [&](std::int64_t n) {
    return reinterpret_cast<std::uint16_t*>(arrays.own(at::randn({n}, arrays.there(at::kBFloat16))));
  };
  ChainForwardArgs forward;
  forward.rows = rows;
  forward.width = kWidth;
  forward.outputs = kOutputs;
  std::uint16_t* const below = halves(rows * kWidth);
  std::uint16_t *const weight = halves(kWidth * kWidth), *const output_weight = halves(kOutputs * kWidth);
  forward.below = below;
  forward.weight = weight;
  forward.bias = halves(kWidth);
  forward.output_weight = output_weight;
  forward.output_bias = arrays.floats(kOutputs);
  forward.hidden = halves(rows * kWidth);
  forward.output = {arrays.floats(rows * 44), 44};
  forward.signs = arrays.flags(rows * kWidth / 8, 0.5);
  forward.below_signs = arrays.flags(rows * kWidth / 8, 0.5);
  ChainBackwardArgs backward;
  backward.signs = forward.signs;
  backward.below_signs = forward.below_signs;
  const auto layer = [&](HiddenGradientArgs& args, GradientMatrix grad, std::uint16_t* of, int inner,
                         std::uint16_t* activated) {
    args.rows = rows;
    args.width = args.biases = kWidth;
    args.derivative = Derivative::kRelu;
    args.grad = grad;
    args.weight = {nullptr, of, kWidth};
    args.inner = inner;
    args.activated = {nullptr, activated, kWidth};
    args.to = {nullptr, halves(rows * kWidth), kWidth};
    args.bias_grad = arrays.floats(kWidth);
    args.parts = arrays.floats(HiddenGradientArgs::kMaxParts * kWidth);
    args.as_chain = true;
  };
  layer(backward.output, {nullptr, halves(rows * kStride), kStride}, output_weight, kOutputs, forward.hidden);
  layer(backward.hidden, backward.output.to, weight, kWidth, below);
  constexpr std::int64_t kRow = 2 * kWidth, kSigns = kWidth / 4;  // bytes
  const std::int64_t bytes = what == Last::kForward    ? 2 * kRow + 4 * 44 + kSigns
                             : what == Last::kBackward ? 2 * kRow + 2 * kStride + kSigns
                                                       : 5 * kRow + 2 * kStride;
  run(state, device, rows, rows * bytes, [&](Queue queue) {
    if (what == Last::kForward) return cuda::chain_forward(queue.stream, forward);
    if (what == Last::kBackward) return cuda::chain_backward(queue.stream, backward);
    cuda::gradient_product(queue.stream, backward.output);
    cuda::gradient_product(queue.stream, backward.hidden);
  });
}

// The cost of a profiling scope while --profile is off.
void bench_idle_scope(benchmark::State& state) {
  for (auto _ : state) {
    const profile::Scope scope("idle");
    benchmark::ClobberMemory();
  }
}

using Bench = void (*)(benchmark::State&, const Game&, Device);

// Registers the benchmark for the game `only`, or for all games.
void add(const char* kernel, Bench bench, Device device, std::string_view only = "") {
  for (const Game& game : kGames) {
    if (!only.empty() && only != game.name) continue;
    const std::string name = concat(kernel, "/", game.name, "/", device.is_cuda() ? "cuda" : "cpu");
    benchmark::RegisterBenchmark(name.c_str(), [=, &game](benchmark::State& state) {
      bench(state, game, device);
    })->UseRealTime();
  }
}

constexpr std::int64_t kChunk = 16'384, kRows[] = {kChunk, 65'536, 131'072, 204'800};
// A wave of an H100's blocks, and a block more.
constexpr std::int64_t kWaves[] = {67'584, 67'712, 135'168, 135'296};

// Registers `bench(state, rows)` as NAME/ROWS for all numbers of rows, on the CPU for the fewest.
template <typename Call>
void add_rows(const std::string& name, Device device, Call bench,
              std::span<const std::int64_t> numbers = kRows) {
  for (const std::int64_t rows : numbers) {
    if (!device.is_cuda() && rows != kChunk) continue;
    benchmark::RegisterBenchmark(concat(name, "/", rows, "/", device.is_cuda() ? "cuda" : "cpu").c_str(),
                                 [=](benchmark::State& state) { bench(state, rows); })
        ->UseRealTime();
  }
}

void add_all_rows(Device device) {
  using State = benchmark::State;
  const Game& headline = kGames[1];
  add_rows("sample/2x21", device,
           [=, &headline](State& state, std::int64_t rows) { bench_sample(state, headline, device, rows); });
  add_rows("loss/2x21", device,
           [=, &headline](State& state, std::int64_t rows) { bench_loss(state, headline, device, rows); });
  if (device.is_cuda()) {
    add_rows(
        "loss/2x21", device,
        [=, &headline](State& state, std::int64_t rows) { bench_loss(state, headline, device, rows); },
        kWaves);
    const std::pair<const char*, Last> chains[] = {{"chain/forward", Last::kForward},
                                                   {"chain/backward", Last::kBackward},
                                                   {"chain/backward apart", Last::kApart}};
    for (const auto& [name, what] : chains)
      add_rows(name, device,
               [=](State& state, std::int64_t rows) { bench_chain(state, device, rows, what); });
    add_rows("perceptron/backward", device,
             [=](State& state, std::int64_t rows) { bench_perceptron(state, device, rows); });
    for (const int outputs : {43, 48})
      add_rows(concat("output weights/", outputs), device,
               [=](State& state, std::int64_t rows) { bench_output_weights(state, device, rows, outputs); });
    for (const bool backward : {false, true})
      benchmark::RegisterBenchmark(backward ? "table_backward/blocks/cuda" : "table_forward/blocks/cuda",
                                   [=](State& state) { bench_table_blocks(state, device, backward); })
          ->UseRealTime();
  }
  for (const auto& [name, kind] : {std::pair("mingru", CellKind::kMinGru), std::pair("gru", CellKind::kGru),
                                   std::pair("lstm", CellKind::kLstm)})
    benchmark::RegisterBenchmark(
        concat("cell/", name, "/32x128x64/", device.is_cuda() ? "cuda" : "cpu").c_str(),
        [=, kind = kind](State& state) { bench_cell(state, device, kind); })
        ->UseRealTime();
  add_rows("entities", device, [=](State& state, std::int64_t rows) { bench_entities(state, device, rows); });
  for (const bool halves : {false, true}) {
    const std::string type = halves ? "bf16" : "fp32";
    add_rows("search/" + type, device,
             [=](State& state, std::int64_t rows) { bench_search(state, device, rows, halves); });
    if (halves && !device.is_cuda()) continue;  // there rounded activations are floats
    add_rows("layer_norm/" + type, device,
             [=](State& state, std::int64_t rows) { bench_layer_norm(state, device, rows, halves); });
  }
}

void bench_sample_of_step(benchmark::State& state, const Game& game, Device device) {
  bench_sample(state, game, device, game.step_rows());
}

void bench_loss_of_chunk(benchmark::State& state, const Game& game, Device device) {
  bench_loss(state, game, device, std::min(game.rows(), kChunk));
}

}  // namespace
}  // namespace wd

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::vector<wd::Device> devices = {{}};
  if (wd::why_no_gpu().empty()) devices.push_back(wd::select_device(wd::DeviceRequest::kCuda));
  benchmark::AddCustomContext("threads", std::to_string(wd::num_threads()));
  for (const wd::Device device : devices) {
    wd::add("sample", wd::bench_sample_of_step, device);
    wd::add("loss", wd::bench_loss_of_chunk, device);
    wd::add("returns", wd::bench_returns, device);
    wd::add("assign_minibatches", wd::bench_assign_minibatches, device);
    wd::add("gather", wd::bench_gather, device);
    wd::add("moments", wd::bench_moments, device);
    wd::add("sum_of_squares", wd::bench_squares, device);
    wd::add("episodes", wd::bench_episodes, device);
    wd::add("adam", wd::bench_adam, device);
    wd::add("table_forward", wd::bench_table_forward, device, "tag_continuous");
    wd::add("table_backward", wd::bench_table_backward, device, "tag_continuous");
    wd::add_all_rows(device);
    if (!device.is_cuda()) wd::add("product", wd::bench_product, device);
  }
  benchmark::RegisterBenchmark("idle_scope", wd::bench_idle_scope);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
