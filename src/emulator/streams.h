// streams.h: streams, events and graphs of the emulated GPU.
//
// A stream is a queue of work. Work runs when the host waits for it, or earlier: each order of streams that
// the events allow can happen, and so can each distance between the host and the device. Misuse that CUDA
// reports is reported here too.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "wd/emulator/emulation.h"

namespace wd::emulation {

// When work runs, at the latest if the host waits for it.
enum class Progress {
  kImmediate,  // when it is enqueued, if no event that it waits for is missing
  kLazy,       // when the host waits, and only what it waits for
  kRandom      // anything in between: after each enqueuing, some work of some streams runs
};
// Applies from now on. The seed starts a new sequence of random choices.
void set_progress(Progress progress, std::uint64_t seed = 1);

// Work that was captured, and what it comes after.
struct Captured {
  struct Piece {
    std::function<void()> work;
    std::vector<std::size_t> after;  // pieces
  };
  std::vector<Piece> pieces;
  bool open = true;  // the capture has not ended
};

// A point in the work of a stream that has been reached or not.
struct Mark {
  bool reached = false;
  std::chrono::steady_clock::time_point when{};
};

class Stream {
 public:
  // Runs the work after everything that is on the stream, or adds it to the capture of the stream. Throws
  // std::runtime_error if this is the default stream and another stream captures.
  void enqueue(std::function<void()> work);
  // Returns when the work on the stream has run. Throws std::runtime_error if the stream captures, or if it
  // waits for an event that no stream will record; throws what the work throws.
  void synchronize();

  // From now on, work on this stream, and on streams that wait for an event of it, is captured.
  void begin_capture();
  // Throws std::runtime_error if another stream was forked and not joined.
  std::shared_ptr<const Captured> end_capture();
  // Ends a capture that failed.
  void discard_capture();
  bool captures() const { return capture_ != nullptr; }

 private:
  friend class Event;
  friend class Device;
  struct Node {
    std::function<void()> work;
    std::shared_ptr<Mark> reaches, needs;
  };

  bool runnable() const {
    return !queue_.empty() && (!queue_.front().needs || queue_.front().needs->reached);
  }
  void push(Node node);

  std::deque<Node> queue_;
  std::shared_ptr<Captured> capture_;
  std::vector<std::size_t> tail_;  // the pieces that the next captured piece comes after
};

class Event {
 public:
  void record(Stream& stream);
  // Later work of the stream runs after what was recorded. Does nothing if nothing was.
  void block(Stream& stream) const;
  bool reached() const { return mark_ == nullptr || mark_->reached; }
  void synchronize() const;
  std::chrono::steady_clock::time_point when() const { return mark_->when; }

 private:
  std::shared_ptr<Mark> mark_;
  std::shared_ptr<Captured> capture_;
  std::vector<std::size_t> after_;
};

// Enqueues the captured work as one piece of work. Its pieces run in any order that their dependencies allow.
void replay(const std::shared_ptr<const Captured>& captured, Stream& stream);

// How often work was captured, by name: a kernel by the type of its first argument, an operation of torch as
// aten::NAME, and a product of cuBLASLt as "product".
std::map<std::string, int>& captured_launches();

// Streams by number; 0 is the default stream. They are never destroyed.
Stream& stream(std::size_t number);
std::size_t new_stream();
// The number of the calling thread's current stream.
std::size_t current_stream();
void set_current_stream(std::size_t number);

}  // namespace wd::emulation
