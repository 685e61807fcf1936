// sealed_store.cpp: seals in front of values.
#include "src/distributed/sealed_store.h"

#include <algorithm>
#include <thread>

#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/distributed/seal.h"
#include "wd/error.h"
#include "wd/heartbeat.h"

namespace wd {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Clock = std::chrono::steady_clock;

class SealedStore final : public c10d::Store {
 public:
  SealedStore(wd::Store store, std::string token, std::string session)
      : c10d::Store(store->getTimeout()),
        store_(std::move(store)),
        token_(std::move(token)),
        session_(std::move(session)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<SealedStore>(store_->clone(), token_, session_);
  }

  void set(const std::string& key, const Bytes& value) override {
    const std::string front = seal_of(key, value);
    Bytes sealed(front.begin(), front.end());
    sealed.insert(sealed.end(), value.begin(), value.end());
    store_->set(key, sealed);
  }

  Bytes get(const std::string& key) override {
    constexpr std::chrono::milliseconds kPause(10);
    const Clock::time_point end = Clock::now() + getTimeout();
    for (bool told = false;; told = true) {
      const Bytes sealed = store_->get(key);  // waits until there is a value
      const std::size_t length = std::min(sealed.size(), kSealLength);
      const Bytes value(sealed.begin() + static_cast<std::ptrdiff_t>(length), sealed.end());
      if (std::string(sealed.begin(), sealed.begin() + static_cast<std::ptrdiff_t>(length)) ==
          seal_of(key, value))
        return value;
      const std::string what = concat("the value of ", without_controls(key),
                                      " in the job's store was not written by a worker of this job");
      if (!told) logging::warn(what + ": ignored");
      if (Clock::now() >= end) throw PeerError(what + "; another process writes to the store");
      heartbeat::beat();
      std::this_thread::sleep_for(kPause);
    }
  }

  std::int64_t add(const std::string& key, std::int64_t value) override { return store_->add(key, value); }
  bool deleteKey(const std::string& key) override { return store_->deleteKey(key); }
  bool check(const std::vector<std::string>& keys) override { return store_->check(keys); }
  std::int64_t getNumKeys() override { return store_->getNumKeys(); }
  void wait(const std::vector<std::string>& keys) override { store_->wait(keys, getTimeout()); }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override {
    store_->wait(keys, timeout);
  }
  void setTimeout(const std::chrono::milliseconds& timeout) override {
    c10d::Store::setTimeout(timeout);
    store_->setTimeout(timeout);
  }

 private:
  static constexpr std::size_t kSealLength = 64;

  std::string seal_of(const std::string& key, const Bytes& value) const {
    return seal(token_,
                concat(session_, ' ', key.size(), ' ', key, ' ', std::string(value.begin(), value.end())));
  }

  wd::Store store_;
  std::string token_, session_;
};

}  // namespace

Store make_sealed(Store store, std::string token, std::string session) {
  return c10::make_intrusive<SealedStore>(std::move(store), std::move(token), std::move(session));
}

}  // namespace wd
