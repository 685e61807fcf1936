// ranks_agree_test.cpp: ranks that begin with different weights have equal ones before the first rollout.
#include <ATen/ATen.h>

#include "tests/distributed/ranks.h"
#include "tests/support.h"
#include "wd/trainer.h"

namespace wd {
namespace {

Experiment setup_with_seed(int seed) {
  return make_setup("tag_gridworld", {"trainer.num_envs=6", "trainer.train_batch_size=30",
                                      "trainer.threads=1", concat("trainer.seed=", seed)});
}

TEST(RanksAgree, T3_DifferentlySeededRanksAreTheSameBeforeTheFirstRollout) {
  on_ranks(2, [](const ProcessGroup& group) {
    const Experiment setup = setup_with_seed(1 + group.rank());
    Trainer alone(setup.config, *setup.environment, {});
    const at::Tensor apart = group.all_gather_rows(alone.policies()[0].parameters().view({1, -1}));
    EXPECT_FALSE(at::equal(apart[0], apart[1])) << "the seeds make no difference: nothing is tested";
    Trainer together(setup.config, *setup.environment, {}, group);
    together.check_ranks_agree();
    for (const Policy& policy : together.policies()) {
      const at::Tensor both = group.all_gather_rows(policy.parameters().view({1, -1}));
      EXPECT_TRUE(at::equal(both[0], both[1]));
    }
  });
}

TEST(RanksAgree, T2_OneBitOnOneRankIsNoticedOnAll) {
  on_ranks(3, [](const ProcessGroup& group) {
    const Experiment setup = setup_with_seed(1);
    Trainer trainer(setup.config, *setup.environment, {}, group);
    trainer.check_ranks_agree();
    if (group.rank() == 1) {
      const at::Tensor parameters = trainer.policies()[0].parameters();
      static_cast<std::uint8_t*>(parameters.data_ptr())[17] ^= 1;
    }
    try {
      trainer.check_ranks_agree();
      ADD_FAILURE() << "nobody noticed";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("of rank 1 are not those of rank 0"), std::string::npos)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace wd
