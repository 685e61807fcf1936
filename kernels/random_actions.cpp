// random_actions.cpp: random actions on the CPU, with rows divided among threads.
#include "kernels/random_actions_body.h"
#include "wd/detail/parallel.h"
#include "wd/detail/profile.h"
#include "wd/detail/vectors.h"
#include "wd/error.h"

namespace wd {
namespace {

// The same numbers as random_action_row() for kHeads heads without masks, in a loop that the compiler
// vectorizes.
template <int kHeads>
void fill(const RandomActionsArgs& all, RandomKey key, std::int64_t begin, std::int64_t end) {
  const RandomActionsArgs args = all;  // a copy that the stores below cannot alias
  for (std::int64_t row = begin; row < end; ++row) {
    for (int h = 0; h < kHeads; ++h) {
      args.action[row * kHeads + h] =
          below(random_word(key, args.first_row + static_cast<std::uint32_t>(row), h), args.head_size[h]);
    }
  }
}

}  // namespace

RandomActionsArgs random_actions_of(const ActionSpace& space, std::uint64_t seed, std::uint32_t policy,
                                    std::uint64_t step) {
  WD_CHECK(space.heads.size() <= kMaxHeads, "an action has ", space.heads.size(), " heads; at most ",
           kMaxHeads, " are supported");
  RandomActionsArgs args;
  args.num_heads = static_cast<int>(space.heads.size());
  for (std::size_t h = 0; h < space.heads.size(); ++h) args.head_size[h] = space.heads[h];
  args.components = space.components();
  args.random = RandomKey::of(seed, RandomUse::kRandomPlay);
  args.policy = policy;
  args.step = step;
  return args;
}

void random_actions(Queue queue, const RandomActionsArgs& args) {
  if (queue.cuda) return cuda::random_actions(queue.stream, args);
  const profile::Scope scope("random actions");
  const bool plain = args.components == 0 && args.action_mask == nullptr;
  const RandomKey key = step_key(args);
  parallel_for(args.rows, 16384, vectorized([&](std::int64_t begin, std::int64_t end) {
                 if (plain && args.num_heads == 1) return fill<1>(args, key, begin, end);
                 if (plain && args.num_heads == 2) return fill<2>(args, key, begin, end);
                 for (std::int64_t row = begin; row < end; ++row) random_row(args, key, row);
               }));
}

}  // namespace wd
