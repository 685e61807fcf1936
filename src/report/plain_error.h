// plain_error.h: an exception's message as people can use it: one line of cause and remedy, no backtrace of a
// library.
#pragma once

#include <exception>
#include <string>

namespace wd {

// What people can do where a training needs more memory than there is.
inline constexpr const char* kLessMemory =
    "; lower trainer.num_envs or trainer.train_batch_size, the environment's number of agents, or "
    "policy.NAME.model.fc_dims; --auto_scale finds replicas and steps that fit";

// The message; of torch's errors without its backtrace. Where memory could not be had: how much was asked
// for, and which settings ask for less.
std::string plain_message(const std::exception& error);

}  // namespace wd
