// critics.cu: one row per item; on the CPU they run on the calling thread, because blocks of rows already run
// in parallel.
#include "kernels/critics_body.h"
#include "wd/kernel.h"

WD_KERNEL(critic_target, CriticTargetArgs, critic_target_row, args.rows, args.rows, "targets of critics")
WD_KERNEL(actor_loss, ActorLossArgs, actor_loss_row, args.rows, args.rows, "loss of actions")
WD_KERNEL(choices_target, CriticTargetArgs, choices_target_row, args.rows, args.rows, "targets of critics")
WD_KERNEL(choices_loss, ChoicesLossArgs, choices_loss_row, args.rows, args.rows, "loss of actions")
WD_KERNEL(value_penalty, ValuePenaltyArgs, value_penalty_row, args.rows, args.rows, "loss")
WD_SMALL_KERNEL(temperature_loss, TemperatureArgs, temperature_of, 1)
