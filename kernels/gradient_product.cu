// gradient_product.cu: a block keeps its columns of the weight in shared memory, in the order in which lanes
// load them. It stages one tile of rows after another there; while tensor cores multiply a tile, the next
// one is loaded to registers. Each lane has kEach neighboring columns of its rows, so that it can read and
// write packs.
#include "kernels/hidden_gradient.cuh"

namespace wd::cuda {

namespace {

constexpr int kProductThreads = ProductShape::kThreads, kSide = ProductShape::kSide,
              kEachLane = ProductShape::kEach, kStep = ProductShape::kStep;
constexpr int kHigh = kSide / 16, kWide = kSide / 8;  // products of a warp, 16 rows or 8 columns each

struct ProductPass {
  HiddenGradientArgs args;
  ProductShape shape;
};

// A thread's share of a tile of rows, in registers between global and shared memory.
template <typename Number, int kPacks>
class Tile {
 public:
  __device__ Tile(const ProductPass& pass)
      : pass_(pass),
        from_(numbers_of<Number>(pass.args, pass.args.grad)),
        across_(pass.shape.words / 4),
        row_(static_cast<int>(threadIdx.x) / across_),
        pack_(static_cast<int>(threadIdx.x) % across_),
        rows_(kProductThreads / across_),
        packs_(kProductThreads % across_) {}

  // Rows from `begin`; those from `end` on count as 0.
  __device__ void load(std::int64_t begin, std::int64_t end) {
    constexpr int kNumbers = 16 / sizeof(Number);
    int row = row_, at = pack_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      const bool there = row < pass_.shape.tile() && begin + row < end && at * kNumbers < pass_.args.inner;
      loaded_[k] = {};
      if (there)
        loaded_[k] = *reinterpret_cast<const WordPack*>(from_ + (begin + row) * pass_.args.grad.stride +
                                                        at * kNumbers);
      move(row, at);
    }
  }
  __device__ void store(std::uint32_t* stage) const {
    constexpr int kNumbers = 16 / sizeof(Number);
    int row = row_, at = pack_;
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      if (row < pass_.shape.tile())
        *reinterpret_cast<WordPack*>(stage + row * pass_.shape.stride() + at * 4) =
            without_padding<Number>(loaded_[k], pass_.args.inner - at * kNumbers);
      move(row, at);
    }
  }

 private:
  __device__ void move(int& row, int& at) const {
    row += rows_;
    at += packs_;
    if (at >= across_) {
      at -= across_;
      ++row;
    }
  }

  const ProductPass& pass_;
  const Number* from_;
  int across_, row_, pack_, rows_, packs_;
  WordPack loaded_[kPacks];
};

// kEachLane neighboring columns of a row of the weight, or zeros.
template <typename Number>
__device__ Numbers<Number, kEachLane> weights_of(const HiddenGradientArgs& args, int row, int column) {
  if (row >= args.inner || column >= args.width) return {};
  return load<Number, kEachLane>(numbers_of<Number>(args, args.weight) + row * args.weight.stride + column);
}

// The weight's columns from `first` on: [steps of words, warps, kWide, lanes, 2 words].
template <typename Number>
__device__ void stage_weight(const ProductPass& pass, int first, std::uint32_t* to) {
  const int octets = pass.shape.columns() / kEachLane, items = pass.shape.words * octets;
#pragma unroll 4
  for (int item = static_cast<int>(threadIdx.x); item < items; item += kProductThreads) {
    const int word = item % kStep, octet = item / kStep % octets, step = item / kStep / octets;
    const int row = first_word_of_step(step, word % 4, pass.shape.words) + word / 4,
              column = first + octet * kEachLane;
    std::uint32_t words[kEachLane];
    if constexpr (sizeof(Number) == 2) {
      const auto low = weights_of<Number>(pass.args, 2 * row, column),
                 high = weights_of<Number>(pass.args, 2 * row + 1, column);
#pragma unroll
      for (int c = 0; c < kEachLane; ++c) words[c] = low.at[c] | static_cast<std::uint32_t>(high.at[c]) << 16;
    } else {
      const auto numbers = weights_of<Number>(pass.args, row, column);
#pragma unroll
      for (int c = 0; c < kEachLane; ++c) words[c] = to_tf32(numbers.at[c]);
    }
    // Column c of lanes with t = octet % 4 is column 2t + c % 2 of product c / 2.
    std::uint32_t* const of_warp = to + (step * pass.shape.across + octet / 4) * kWide * 64 + word / 4;
#pragma unroll
    for (int c = 0; c < kEachLane; ++c)
      of_warp[c / 2 * 64 + ((octet % 4 * 2 + c % 2) * 4 + word % 4) * 2] = words[c];
  }
}

template <typename Number, Derivative kDerivative, int kPacks>
__device__ __forceinline__ void product_of_rows(const ProductPass& pass) {
  const HiddenGradientArgs& args = pass.args;
  const ProductShape& shape = pass.shape;
  auto* const weight = reinterpret_cast<std::uint32_t*>(dynamic_shared());
  std::uint32_t* const stages = weight + shape.weight_words();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4, t = lane % 4, beside = warp % shape.across, high = warp / shape.across * kSide;
  const int first = static_cast<int>(blockIdx.y) * shape.columns(), own = beside * kSide + t * kEachLane,
            column = first + own;
  const std::int64_t begin = blockIdx.x * shape.rows_per_part;
  const std::int64_t end = begin + shape.rows_per_part < args.rows ? begin + shape.rows_per_part : args.rows;
  const Number* const activated = numbers_of<Number>(args, args.activated) + column;
  Number* const to = numbers_of<Number>(args, args.to) + column;
  Tile<Number, kPacks> next(pass);
  next.load(begin, end);
  stage_weight<Number>(pass, first, weight);
  float sum[ProductShape::kMostSlots] = {};  // of column g of the lane's, by slot
  std::uint32_t* stage = stages;
  for (std::int64_t top = begin; top < end; top += shape.tile()) {
    next.store(stage);
    meet(Place::current());
    if (top + shape.tile() < end) next.load(top + shape.tile(), end);
    Numbers<Number, kEachLane> y[kHigh][2] = {};
    if constexpr (kDerivative != Derivative::kNone) {
#pragma unroll
      for (int i = 0; i < 2 * kHigh; ++i) {
        const std::int64_t row = top + high + i * 8 + g;
        if (row < end && column < args.width)
          y[i / 2][i % 2] = load<Number, kEachLane>(activated + row * args.activated.stride);
      }
    }
    float product[kHigh][kWide][4] = {};
#pragma unroll 2
    for (int step = 0; step < shape.words / kStep; ++step) {
      std::uint32_t a[kHigh][4], b[kWide][2];
      const std::uint32_t* const rows =
          stage + (high + g) * shape.stride() + first_word_of_step(step, t, shape.words);
#pragma unroll
      for (int i = 0; i < 2 * kHigh; ++i) {
        const auto pair = *reinterpret_cast<const WordPair*>(rows + i * 8 * shape.stride());
        a[i / 2][i % 2] = pair.word[0];
        a[i / 2][2 + i % 2] = pair.word[1];
      }
      const std::uint32_t* const columns = weight + ((step * shape.across + beside) * kWide * 32 + lane) * 2;
#pragma unroll
      for (int n = 0; n < kWide; ++n) {
        const auto pair = *reinterpret_cast<const WordPair*>(columns + n * 64);
        b[n][0] = pair.word[0];
        b[n][1] = pair.word[1];
      }
#pragma unroll
      for (int m = 0; m < kHigh; ++m)
#pragma unroll
        for (int n = 0; n < kWide; ++n) multiply_add<Number>(product[m][n], a[m], b[n], Place::current());
    }
#pragma unroll
    for (int m = 0; m < kHigh; ++m) {
      float of_rows[kEachLane] = {};
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const std::int64_t row = top + high + m * 16 + r * 8 + g;
        if (row >= end || column >= args.width) continue;
        Numbers<Number, kEachLane> result;
#pragma unroll
        for (int c = 0; c < kEachLane; ++c) {
          Number of_y;
          store_number(&of_y, product[m][c / 2][r * 2 + c % 2]);
          result.at[c] = derived<Number, kDerivative>(of_y, y[m][r].at[c]);
          of_rows[c] += load_number(&result.at[c]);
        }
        *reinterpret_cast<Numbers<Number, kEachLane>*>(to + row * args.to.stride) = result;
      }
      const float of_column = sum_over_rows(of_rows, lane);
      const int slot = shape.slot_of(top - begin + high + m * 16);
#pragma unroll
      for (int k = 0; k < ProductShape::kMostSlots; ++k)
        if (k == slot) sum[k] += of_column;
    }
    stage = stage == stages ? stages + shape.stage_words() : stages;
  }
  if (args.bias_grad == nullptr) return;
  meet(Place::current());  // the stages are free
  // The slots' sums, in order. [slots][columns]
  auto* const subtotal = reinterpret_cast<float*>(stages);
  const int columns = shape.columns();
#pragma unroll
  for (int k = 0; k < ProductShape::kMostSlots; ++k)
    if (k < shape.slots && k * 16 % shape.tile() / kSide == high / kSide)
      subtotal[k * columns + own + g] = sum[k];
  meet(Place::current());
  if (static_cast<int>(threadIdx.x) >= columns) return;
  float total = subtotal[threadIdx.x];
  for (int k = 1; k < shape.slots; ++k) total += subtotal[k * columns + static_cast<int>(threadIdx.x)];
  put_column_sum(args, shape.parts, first + static_cast<int>(threadIdx.x), total);
}

template <typename Number, Derivative kDerivative, int kPacks>
void enqueue(void* stream, const ProductPass& pass) {
  const std::size_t bytes = pass.shape.shared_bytes();
  const auto kernel = kernel_of<product_of_rows<Number, kDerivative, kPacks>, kProductThreads>();
  ask_for_shared("gradient_product", kernel, bytes);
  launch(kernel,
         {dim3(static_cast<unsigned>(pass.shape.parts), static_cast<unsigned>(pass.shape.groups),
               static_cast<unsigned>(pass.args.matrices)),
          kProductThreads, stream, bytes},
         pass);
  check_launch("gradient_product");
  if (pass.args.bias_grad != nullptr && pass.shape.parts > 1) add_parts(stream, pass.args, pass.shape.parts);
}

template <typename Number, Derivative kDerivative>
void by_packs(void* stream, const ProductPass& pass) {
  static_assert(ProductShape::kMaxPacks == 8);
  if (pass.shape.packs() <= 2) return enqueue<Number, kDerivative, 2>(stream, pass);
  if (pass.shape.packs() <= 4) return enqueue<Number, kDerivative, 4>(stream, pass);
  enqueue<Number, kDerivative, 8>(stream, pass);
}

template <typename Number>
void by_derivative(void* stream, const ProductPass& pass) {
  switch (pass.args.derivative) {
    case Derivative::kNone:
      return by_packs<Number, Derivative::kNone>(stream, pass);
    case Derivative::kRelu:
      return by_packs<Number, Derivative::kRelu>(stream, pass);
    case Derivative::kTanh:
      return by_packs<Number, Derivative::kTanh>(stream, pass);
  }
}

}  // namespace

void gradient_product(void* stream, const HiddenGradientArgs& args) {
  WD_CHECK(ProductShape::fits(args), "CUDA kernel gradient_product: ", args.inner, " x ", args.width);
  if (args.rows == 0 || args.width == 0) return;
  const ProductPass pass{args, ProductShape::of(args)};
  args.grad.halves != nullptr ? by_derivative<std::uint16_t>(stream, pass)
                              : by_derivative<float>(stream, pass);
}

}  // namespace wd::cuda
