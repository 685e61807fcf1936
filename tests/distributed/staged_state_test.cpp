// staged_state_test.cpp: state of replicas that an algorithm of a program's own keeps is divided among ranks.
#include <ATen/ATen.h>

#include "tests/distributed/ranks.h"
#include "tests/trainer/staged.h"
#include "wd/trainer.h"

namespace wd {
namespace {

TEST(StagedState, OfTwoRanksIsThatOfOneAndGoesOnThere) {
  on_ranks(2, [](const ProcessGroup& group) {
    const Experiment setup = staged_setup();
    Trainer trainer(setup.config, *setup.environment, {}, group);
    trainer.iterate();
    trainer.check_ranks_agree();
    const Snapshot snapshot = trainer.snapshot();
    if (!group.leads()) return;
    const at::Tensor memory = staged_memory(snapshot);
    ASSERT_EQ(memory.size(0), 6);
    EXPECT_FALSE(at::equal(memory.narrow(0, 0, 3), memory.narrow(0, 3, 3))) << "both ranks have the same";
    Trainer alone(setup.config, *setup.environment, {}), resumed(setup.config, *setup.environment, {});
    alone.iterate();
    EXPECT_TRUE(at::equal(memory, staged_memory(alone.snapshot())));
    resumed.restore(snapshot);
    EXPECT_TRUE(at::equal(memory, staged_memory(resumed.snapshot())));
    for (int i = 0; i < 3; ++i) resumed.iterate();
    EXPECT_EQ(resumed.counts().iteration, 4);
  });
}

}  // namespace
}  // namespace wd
