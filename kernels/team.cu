// team.cu: one team per item; on the CPU they run on the calling thread where blocks of rows already run in
// parallel.
#include "kernels/team_body.h"
#include "wd/kernel.h"

WD_KERNEL(team_value, TeamValueArgs, team_value_row, args.teams.count, args.teams.count, "values of teams")
WD_KERNEL(team_target, TeamTargetArgs, team_target_row, args.teams.count, args.teams.count, "targets")
WD_KERNEL(team_loss, TeamLossArgs, team_loss_row, args.teams.count, args.teams.count, "loss")
WD_KERNEL(team_reward, TeamRewardArgs, team_reward_row, args.teams, 256, "rewards of teams")
