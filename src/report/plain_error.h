// plain_error.h: turns an exception into a message for users: one line with cause and remedy, without a
// library's backtrace.
#pragma once

#include <exception>
#include <string>

namespace wd {

// Advice if training needs more memory than there is.
inline constexpr const char* kLessMemory =
    "; lower trainer.num_envs or trainer.train_batch_size, the environment's number of agents, or "
    "policy.NAME.model.fc_dims; --auto_scale finds replicas and steps that fit";

// Returns the exception's message, without the backtrace of torch errors. If memory ran out, the message
// names the requested amount and the settings that reduce it.
std::string plain_message(const std::exception& error);

}  // namespace wd
