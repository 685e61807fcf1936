// gather.cu: gathering on the GPU, one thread per word.
#include "kernels/gather_body.h"
#include "wd/detail/for_each.cuh"

namespace wd::cuda {

namespace {

struct TwoGathers {
  GatherArgs first, second;
  std::int64_t words;  // of the first
};

WD_FN void gather_word_of(const TwoGathers& args, std::int64_t i) {
  i < args.words ? gather_word(args.first, i) : gather_word(args.second, i - args.words);
}

}  // namespace

void gather(void* stream, const GatherArgs& args) {
  for_each<gather_word>(stream, "gather", args.rows * words_of_row(args), args);
}

void gather_both(void* stream, const GatherArgs& first, const GatherArgs& second) {
  const std::int64_t words = first.rows * words_of_row(first);
  for_each<gather_word_of>(stream, "gather", words + second.rows * words_of_row(second),
                           TwoGathers{first, second, words});
}

}  // namespace wd::cuda
