// random.h: counter-based random numbers (Philox 4x32-10): a pure function of agent, time and purpose.
//
// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. There is no generator state: the
// same (seed, replica, agent, episode, step, purpose) gives the same number on CPU and GPU, in any order and
// on any rank.
#pragma once

#include <cstdint>

#include "wd/math.h"

namespace wd {

struct Philox {
  std::uint32_t word[4];
};

// Ten rounds of Philox 4x32. tests/env/random_test.cpp checks the known answers of the Random123
// distribution.
WD_FN Philox philox(Philox counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(p1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(p1),
                static_cast<std::uint32_t>(p0 >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(p0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// Maps 24 bits to [0, 1): every value is a multiple of 2^-24.
WD_FN float uniform_of(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 5.9604644775390625e-8f; }

// What random numbers are for: each use has its own under one seed. Environments draw by kEnvironment.
enum class RandomUse : std::uint32_t {
  kEnvironment = 0,
  kAction = 1,
  kShuffle = 2,
  kPool = 3,
  kStagger = 4,
  kRandomPlay = 5,
  kReplay = 6,
  kActor = 7,
  kNoiseMatrix = 8,
  kOpponent = 9,
  kWeights = 10,
};

// Splits a 64-bit seed into a Philox key for one use.
struct RandomKey {
  std::uint32_t key0, key1;
  WD_FN static RandomKey of(std::uint64_t seed, RandomUse use) {
    return {static_cast<std::uint32_t>(seed),
            static_cast<std::uint32_t>(seed >> 32) ^ (static_cast<std::uint32_t>(use) << 24)};
  }
};

// The random numbers of an environment. `purpose`, in [0, 256), distinguishes the draws of one agent in one
// step.
class Random {
 public:
  WD_FN Random(RandomKey key, std::uint32_t replica, std::uint32_t episode, std::uint32_t step)
      : key_(key), replica_(replica), episode_(episode), step_(step) {}

  // 128 random bits.
  WD_FN Philox bits(int agent, int purpose) const {
    return philox({{replica_, episode_, static_cast<std::uint32_t>(agent),
                    (step_ << 8) | static_cast<std::uint32_t>(purpose)}},
                  key_.key0, key_.key1);
  }
  // Uniform on [0, 1).
  WD_FN float uniform(int agent, int purpose) const { return uniform_of(bits(agent, purpose).word[0]); }
  // Uniform on [low, high) up to rounding.
  WD_FN float uniform(int agent, int purpose, float low, float high) const {
    return low + (high - low) * uniform(agent, purpose);
  }
  // Uniform on [0, 1) with 53 bits.
  WD_FN double uniform_double(int agent, int purpose) const {
    const Philox p = bits(agent, purpose);
    const std::uint64_t mantissa = ((std::uint64_t{p.word[0]} << 32) | p.word[1]) >> 11;
    return static_cast<double>(mantissa) * 1.1102230246251565e-16;
  }
  // Uniform on {0, ..., n - 1}; the bias is below n / 2^32.
  WD_FN int integer(int agent, int purpose, int n) const {
    return static_cast<int>((std::uint64_t{bits(agent, purpose).word[0]} * static_cast<std::uint64_t>(n)) >>
                            32);
  }
  // Standard normal (Box and Muller 1958).
  WD_FN float normal(int agent, int purpose) const { return normal_of(bits(agent, purpose)); }

  WD_FN static float normal_of(Philox p) {
    const float u = 1.0f - uniform_of(p.word[0]);  // (0, 1]
    return wd::sqrt(-2.0f * wd::log(u)) * wd::cos(2.0f * kPi * uniform_of(p.word[1]));
  }
  // Four independent standard normals, of which the first is normal_of().
  struct Normals {
    float z[4];
  };
  WD_FN static Normals normals_of(Philox p) {
    Normals all{};
    for (int pair = 0; pair < 2; ++pair) {
      const float u = 1.0f - uniform_of(p.word[2 * pair]);  // (0, 1]
      const float radius = wd::sqrt(-2.0f * wd::log(u)),
                  angle = 2.0f * kPi * uniform_of(p.word[2 * pair + 1]);
      all.z[2 * pair] = radius * wd::cos(angle);
      all.z[2 * pair + 1] = radius * wd::sin(angle);
    }
    return all;
  }

 private:
  RandomKey key_;
  std::uint32_t replica_, episode_, step_;
};

}  // namespace wd
