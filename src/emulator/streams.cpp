// streams.cpp: runs the work of streams in orders that their events allow.
#include "src/emulator/streams.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <utility>

#include "wd/error.h"

namespace wd::emulation {

// All streams of the emulated GPU, and the order in which they advance. Used by one thread at a time.
class Device {
 public:
  static Device& instance() {
    static Device device;
    return device;
  }

  void set(Progress progress, std::uint64_t seed) {
    progress_ = progress;
    random_.seed(seed);
  }
  Stream& at(std::size_t number) { return *streams_.at(number); }
  std::size_t add() {
    streams_.push_back(std::make_unique<Stream>());
    return streams_.size() - 1;
  }
  bool is_default(const Stream& stream) const { return &stream == streams_.front().get(); }
  bool captures() const { return captures_ > 0; }
  void add_capture() { ++captures_; }
  void forget(const std::shared_ptr<Captured>& captured) {
    --captures_;
    for (const auto& stream : streams_) {
      if (stream->capture_ != captured) continue;
      stream->capture_ = nullptr;
      stream->tail_.clear();
    }
  }

  // Called after each enqueuing.
  void advance() {
    if (running_ || progress_ == Progress::kLazy) return;
    if (progress_ == Progress::kImmediate) {
      while (run_one(nullptr)) {
      }
      return;
    }
    for (std::size_t left = random_() % 4; left > 0; --left) run_one(nullptr);
  }

  void run_until(const std::function<bool()>& done, Stream* wanted) {
    WD_CHECK(!running_, "work of the emulated GPU waits for the emulated GPU");
    while (!done()) {
      if (!run_one(wanted))
        throw std::runtime_error("the emulated GPU hangs: a stream waits for an event that nobody records");
    }
  }

  // Indices 0 .. n - 1 in an order in which each comes after those in after(i).
  template <typename After>
  std::vector<std::size_t> order(std::size_t n, const After& after) {
    std::vector<std::size_t> missing(n), ready, result;
    std::vector<std::vector<std::size_t>> then(n);
    for (std::size_t i = 0; i < n; ++i) {
      missing[i] = after(i).size();
      for (const std::size_t before : after(i)) then[before].push_back(i);
      if (missing[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const std::size_t pick = progress_ == Progress::kImmediate ? 0 : random_() % ready.size();
      const std::size_t next = ready[pick];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
      result.push_back(next);
      for (const std::size_t i : then[next])
        if (--missing[i] == 0) ready.push_back(i);
    }
    return result;
  }

 private:
  Device() { add(); }

  // Runs the first work of a stream that can run: `wanted` if it is lazy and possible, otherwise any. Returns
  // false if there is none.
  bool run_one(Stream* wanted) {
    std::vector<Stream*> runnable;
    for (const auto& stream : streams_)
      if (stream->runnable()) runnable.push_back(stream.get());
    if (runnable.empty()) return false;
    Stream* chosen = runnable[progress_ == Progress::kImmediate ? 0 : random_() % runnable.size()];
    if (progress_ == Progress::kLazy && wanted != nullptr && wanted->runnable()) chosen = wanted;
    Stream::Node node = std::move(chosen->queue_.front());
    chosen->queue_.pop_front();
    running_ = true;
    const struct Running {
      bool& flag;
      ~Running() { flag = false; }
    } running{running_};
    if (node.work) node.work();
    if (const Error error = take_error(); error != Error::kNone)
      throw std::runtime_error(concat("the emulated GPU refused a launch: error ", static_cast<int>(error)));
    if (node.reaches) {
      node.reaches->reached = true;
      node.reaches->when = std::chrono::steady_clock::now();
    }
    return true;
  }

  std::vector<std::unique_ptr<Stream>> streams_;
  Progress progress_ = Progress::kImmediate;
  std::mt19937_64 random_;
  bool running_ = false;
  int captures_ = 0;
};

namespace {

void add_to(std::vector<std::size_t>& all, const std::vector<std::size_t>& more) {
  for (const std::size_t piece : more)
    if (std::find(all.begin(), all.end(), piece) == all.end()) all.push_back(piece);
}

thread_local std::size_t current = 0;

}  // namespace

void Stream::push(Node node) {
  Device& device = Device::instance();
  if (device.captures() && device.is_default(*this))
    throw std::runtime_error("the default stream is used while another stream captures");
  queue_.push_back(std::move(node));
  device.advance();
}

void Stream::enqueue(std::function<void()> work) {
  if (!capture_) return push({.work = std::move(work)});
  capture_->pieces.push_back({std::move(work), tail_});
  tail_ = {capture_->pieces.size() - 1};
}

void Stream::synchronize() {
  Device& device = Device::instance();
  if (capture_ || (device.captures() && device.is_default(*this)))
    throw std::runtime_error(
        "operation not permitted when stream is capturing: the host waits for the device");
  device.run_until([this] { return queue_.empty(); }, this);
}

void Stream::begin_capture() {
  WD_CHECK(!capture_, "the stream captures already");
  capture_ = std::make_shared<Captured>();
  Device::instance().add_capture();
}

std::shared_ptr<const Captured> Stream::end_capture() {
  const std::shared_ptr<Captured> captured = capture_;
  std::vector<bool> joined(captured->pieces.size(), false);
  std::vector<std::size_t> left = tail_;
  while (!left.empty()) {
    const std::size_t piece = left.back();
    left.pop_back();
    if (joined[piece]) continue;
    joined[piece] = true;
    left.insert(left.end(), captured->pieces[piece].after.begin(), captured->pieces[piece].after.end());
  }
  discard_capture();
  const auto lost = std::find(joined.begin(), joined.end(), false);
  if (lost != joined.end())
    throw std::runtime_error(concat("the capture has unjoined work: piece ", lost - joined.begin(), " of ",
                                    joined.size(),
                                    " is on a stream that the capturing one does not wait for"));
  return captured;
}

void Stream::discard_capture() {
  if (!capture_) return;
  const std::shared_ptr<Captured> captured = capture_;
  captured->open = false;
  Device::instance().forget(captured);
}

void Event::record(Stream& stream) {
  capture_ = stream.capture_;
  after_ = stream.tail_;
  mark_ = nullptr;
  if (capture_) return;
  mark_ = std::make_shared<Mark>();
  stream.push({.work = {}, .reaches = mark_});
}

void Event::block(Stream& stream) const {
  if (capture_) {
    WD_CHECK(capture_->open, "a stream waits for an event of a capture that has ended");
    WD_CHECK(!stream.capture_ || stream.capture_ == capture_, "two captures are merged");
    stream.capture_ = capture_;
    add_to(stream.tail_, after_);
    return;
  }
  if (!mark_) return;
  WD_CHECK(!stream.capture_, "dependency created on uncaptured work in another stream");
  stream.push({.work = {}, .needs = mark_});
}

void Event::synchronize() const {
  WD_CHECK(!capture_, "the host waits for an event that was captured");
  if (mark_) Device::instance().run_until([this] { return mark_->reached; }, nullptr);
}

void replay(const std::shared_ptr<const Captured>& captured, Stream& stream) {
  stream.enqueue([captured] {
    const auto& pieces = captured->pieces;
    const auto after = [&](std::size_t i) -> const std::vector<std::size_t>& { return pieces[i].after; };
    for (const std::size_t i : Device::instance().order(pieces.size(), after)) pieces[i].work();
  });
}

void set_progress(Progress progress, std::uint64_t seed) { Device::instance().set(progress, seed); }
Stream& stream(std::size_t number) { return Device::instance().at(number); }
std::size_t new_stream() { return Device::instance().add(); }
std::size_t current_stream() { return current; }
void set_current_stream(std::size_t number) { current = number; }

std::map<std::string, int>& captured_launches() {
  static std::map<std::string, int> counts;
  return counts;
}

void enqueue(void* stream, std::function<void()> work, const std::type_info& arguments) {
  if (stream == nullptr) return work();
  auto* const to = static_cast<Stream*>(stream);
  if (to->captures()) {
    int status = 0;
    char* const name = abi::__cxa_demangle(arguments.name(), nullptr, nullptr, &status);
    ++captured_launches()[name];
    std::free(name);
  }
  to->enqueue(std::move(work));
}

}  // namespace wd::emulation
