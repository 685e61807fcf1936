// membership_test.cpp: the variables that torchrun, Slurm and OpenMPI set, and the errors if some are
// missing.
#include "wd/detail/membership.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "wd/error.h"

namespace wd {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Membership read(const Variables& variables) {
  for (const char* name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID",
        "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"})
    ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  return read_membership();
}

std::string refusal(const Variables& variables) {
  try {
    read(variables);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Membership, NothingSetIsAlone) { EXPECT_TRUE(read({}).alone()); }

TEST(Membership, Torchrun) {
  const Membership self = read({{"RANK", "5"},
                                {"WORLD_SIZE", "8"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "node0"},
                                {"MASTER_PORT", "29500"}});
  EXPECT_EQ(self.rank, 5);
  EXPECT_EQ(self.world_size, 8);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.local_world_size, 4);
  EXPECT_EQ(self.master_addr, "node0");
  EXPECT_EQ(self.master_port, 29500);
}

TEST(Membership, RanksOfAShellLoopAreOnOneMachine) {
  const Membership self =
      read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "1"}});
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.local_world_size, 2);
}

TEST(Membership, SlurmNamesTheFirstNodeAndAPort) {
  const Variables job = {
      {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "123456"}};
  for (const auto& [list, first] :
       Variables{{"gpu[03-07,12],other5", "gpu03"}, {"a,b[1-2]", "a"}, {"n[9,10]", "n9"}, {"solo", "solo"}}) {
    Variables all = job;
    all["SLURM_STEP_NODELIST"] = list;
    EXPECT_EQ(read(all).master_addr, first);
  }
  EXPECT_EQ(read(job).master_port, 15'000 + 123'456 % 20'000);
  Variables one = job;
  one["SLURM_NTASKS"] = "1";
  one["SLURM_PROCID"] = "0";
  EXPECT_TRUE(read(one).alone());
}

TEST(Membership, OpenMpiNeedsAMaster) {
  const Variables job = {
      {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
  EXPECT_THAT(refusal(job), HasSubstr("MASTER_ADDR is missing"));
}

TEST(Membership, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal({{"RANK", "0"}}), HasSubstr("WORLD_SIZE is missing"));
  EXPECT_THAT(refusal({{"RANK", "2"}, {"WORLD_SIZE", "2"}}),
              HasSubstr("RANK=2: expected a whole number in [0, 1]"));
  EXPECT_THAT(refusal({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=x"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}),
              HasSubstr("MASTER_PORT is missing"));
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}),
              HasSubstr("MASTER_PORT=70000"));
}

}  // namespace
}  // namespace wd
