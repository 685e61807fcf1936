// random.h: wd/random.h for the emulated GPU. In the modules that `wdtrain check` loads (WD_NOTES_DRAWS),
// each draw is noted: src/emulator/draws.h finds numbers that are drawn twice.
#pragma once
#pragma GCC system_header  // include_next is no C++

#ifndef WD_NOTES_DRAWS
#include_next <wd/random.h>
#else
#define Random PlainRandom
#include_next <wd/random.h>
#undef Random

namespace wd {

namespace emulation {
// `time`: replica, episode and step.
void note_draw(const std::uint32_t (&time)[3], int agent, int purpose);
}  // namespace emulation

// Inlined, so that note_draw() returns to the author's function.
#define WD_DRAW [[gnu::always_inline]] WD_FN
class Random : public PlainRandom {
 public:
  WD_FN Random(RandomKey key, std::uint32_t replica, std::uint32_t episode, std::uint32_t step)
      : PlainRandom(key, replica, episode, step), time_{replica, episode, step} {}

  WD_DRAW Philox bits(int agent, int purpose) const {
    emulation::note_draw(time_, agent, purpose);
    return PlainRandom::bits(agent, purpose);
  }
  WD_DRAW float uniform(int agent, int purpose) const {
    emulation::note_draw(time_, agent, purpose);
    return PlainRandom::uniform(agent, purpose);
  }
  WD_DRAW float uniform(int agent, int purpose, float low, float high) const {
    emulation::note_draw(time_, agent, purpose);
    return PlainRandom::uniform(agent, purpose, low, high);
  }
  WD_DRAW double uniform_double(int agent, int purpose) const {
    emulation::note_draw(time_, agent, purpose);
    return PlainRandom::uniform_double(agent, purpose);
  }
  WD_DRAW int integer(int agent, int purpose, int n) const {
    emulation::note_draw(time_, agent, purpose);
    return PlainRandom::integer(agent, purpose, n);
  }
  WD_DRAW float normal(int agent, int purpose) const {
    emulation::note_draw(time_, agent, purpose);
    return PlainRandom::normal(agent, purpose);
  }

 private:
  std::uint32_t time_[3];
};
#undef WD_DRAW

}  // namespace wd
#endif
