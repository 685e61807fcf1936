// finite.h: the search for numbers that are NaN or infinite.
#pragma once

#include "kernels/queue.h"

namespace wd {

// *first = the least i < n with x[i] NaN or infinite, where that is less than *first was. Enqueues.
void first_not_finite(Queue queue, const float* x, std::int64_t n, std::int64_t* first);

namespace cuda {
void first_not_finite(void* stream, const float* x, std::int64_t n, std::int64_t* first);
}

}  // namespace wd
