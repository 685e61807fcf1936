// together.h: launches that the members of a population make together (src/device/lockstep.h).
#pragma once

#include <cstddef>

namespace wd {

// What one member is about to enqueue.
class MemberLaunch {
 public:
  virtual ~MemberLaunch() = default;
  // Whether one launch can do both; `other` is another one of the same type.
  virtual bool is_like(const MemberLaunch& other) const = 0;
  // Enqueues what `count` alike ones ask for; the first is this.
  virtual void enqueue(const MemberLaunch* const* all, std::size_t count) const = 0;
};

class Together {
 public:
  // Returns when it is enqueued, with those of other members that are like it.
  virtual void launch(const MemberLaunch& one) = 0;

 protected:
  ~Together() = default;
};

// Of the members of which this thread works for one; null: launches are this thread's own. It is one variable
// of the program, whichever of its libraries launches.
[[gnu::visibility("default")]] constinit inline thread_local Together* together = nullptr;

}  // namespace wd
