// polyak.cu: one thread per parameter.
#include "kernels/polyak.h"
#include "wd/kernel.h"
#include "wd/math.h"

namespace wd {

WD_FN void follow(const PolyakArgs& args, std::int64_t i) {
  args.to[i] = args.tau == 1.0f ? args.from[i] : (1.0f - args.tau) * args.to[i] + args.tau * args.from[i];
}

}  // namespace wd

WD_KERNEL(polyak, PolyakArgs, follow, args.n, 16384, "targets")
