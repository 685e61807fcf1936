// shared_memory.h: all-reduce among ranks of one machine, through memory that they share.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "src/distributed/backends.h"

namespace wd {

// Every rank writes its part, and sums the parts of all ranks itself as soon as they are there: one meeting
// instead of the 2 (N - 1) messages of a ring, and no rank has to work for another one. The results have the
// bits of Gloo's ring. Nothing remains of the memory when all processes have ended, however they end.
class SharedMemory {
 public:
  // More ranks are quicker with a ring, in which each of them adds only a part of the numbers.
  static constexpr int kMostRanks = 8;

  // Maps memory that rank 0 creates and announces in `store`. Returns null on a rank that cannot map it, or
  // cannot see the other processes: in another container, for example. All ranks, which are at most
  // kMostRanks. `meet` is a barrier. Throws what it and the store throw if another rank does not answer.
  static std::unique_ptr<SharedMemory> open(const Store& store, int rank, int size,
                                            std::chrono::milliseconds timeout,
                                            const std::function<void()>& meet);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // float, double or int64 on the host, at most 16 MiB.
  static bool takes(const at::Tensor& tensor);
  // Writes this rank's part. Returns the operation's number. All ranks begin all operations in the same
  // order. begin() and end() throw std::runtime_error that names the rank that has ended, or that does not
  // answer within the timeout.
  std::uint64_t begin(const at::Tensor& tensor, ReduceOp op);
  // Waits for the parts of the others, and writes the result into the tensor that was given to begin().
  void end(std::uint64_t operation);

 private:
  struct Rank;
  struct Head;
  class Peers;
  struct Begun {
    std::uint64_t operation;
    at::Tensor tensor;
    ReduceOp op;
  };

  SharedMemory(void* memory, int rank, int size, std::chrono::milliseconds timeout);
  Rank& rank(int r) const;
  std::byte* part(std::uint64_t operation, int r) const;
  template <typename Condition>
  void wait_for_all(const Condition& arrived);
  void tell() const;
  void finish(const Begun& begun);

  void* memory_;
  int rank_, size_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Peers> peers_;
  std::uint64_t operations_ = 0;  // begun
  std::vector<Begun> under_way_;  // in the order of their numbers
};

}  // namespace wd
