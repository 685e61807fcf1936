// no_cuda.cpp: stands in for every kernel of a build without CUDA.
#include <stdexcept>

#include "kernels/adam.h"
#include "kernels/clock.h"
#include "kernels/deal.h"
#include "kernels/episodes.h"
#include "kernels/finite.h"
#include "kernels/gather.h"
#include "kernels/loss.h"
#include "kernels/normalize.h"
#include "kernels/random_actions.h"
#include "kernels/reduce.h"
#include "kernels/returns.h"
#include "kernels/sample.h"
#include "kernels/table_layer.h"

namespace wd::cuda {

namespace {

[[noreturn]] void no_cuda() { throw std::runtime_error("this build has no CUDA"); }

}  // namespace

void adam(void*, const AdamArgs&) { no_cuda(); }
void advance_clock(void*, const AdvanceArgs&) { no_cuda(); }
void schedules(void*, const SchedulesArgs&) { no_cuda(); }
void begin_update(void*, const BeginUpdateArgs&) { no_cuda(); }
void deal(void*, const DealArgs&) { no_cuda(); }
void gather(void*, const GatherArgs&) { no_cuda(); }
void returns(void*, const ReturnsArgs&) { no_cuda(); }
void sample(void*, const SampleArgs&) { no_cuda(); }
void random_actions(void*, const RandomActionsArgs&) { no_cuda(); }
void loss(void*, const LossArgs&) { no_cuda(); }
void episodes(void*, const EpisodesArgs&) { no_cuda(); }
void masked_moments(void*, const float*, const std::uint8_t*, std::int64_t, double*, double*) { no_cuda(); }
void masked_row_moments(void*, const float*, const std::uint8_t*, std::int64_t, std::int64_t, double*) {
  no_cuda();
}
void add_row_sums(void*, const float*, int, std::int64_t, double*, double*) { no_cuda(); }
void watch(void*, const WatchArgs&) { no_cuda(); }
void append_episodes(void*, const AppendArgs&) { no_cuda(); }
void normalization(void*, const NormalizationArgs&) { no_cuda(); }
void begin_loss_record(void*, const BeginLossRecordArgs&) { no_cuda(); }
void record_loss(void*, const RecordLossArgs&) { no_cuda(); }
void normalize_targets(void*, const NormalizeTargetsArgs&) { no_cuda(); }
void note_finite(void*, const NoteFiniteArgs&) { no_cuda(); }
void first_not_finite(void*, const FloatArray&, std::int64_t*) { no_cuda(); }
void sum_of_squares(void*, const float*, std::int64_t, double*, double*) { no_cuda(); }
void table_forward(void*, const TableLayerArgs&) { no_cuda(); }
void table_backward(void*, const TableLayerArgs&) { no_cuda(); }
void table_weights(void*, const TableWeightsArgs&) { no_cuda(); }
void table_gradient(void*, const TableWeightsArgs&) { no_cuda(); }

}  // namespace wd::cuda
