// draws.h: notes which random numbers an environment draws in a launch, to find a number that is drawn twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "wd/emulator/module.h"

namespace wd::emulation {

// Draws of one agent in one step differ by their purpose alone. Two draws with the same agent and purpose
// give the same number, unless it is the same draw: one that all threads make outside of phases.
class Draws {
 public:
  static Draws& instance();

  // From the next launch on; forgets what was noted.
  void enable(bool on);
  void note(const std::uint32_t (&random)[3], int agent, int purpose, const void* caller);
  // The first number that was drawn twice since enable().
  const std::optional<RepeatedDraw>& repeated() const { return repeated_; }

 private:
  struct Draw {
    const void* caller;
    int item, other;
    unsigned block, thread;
  };
  static std::string text(const Draw& draw);

  // replica, episode, step, agent, purpose
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, int, int>;

  bool enabled_ = false;
  std::map<Key, Draw> drawn_;
  std::optional<RepeatedDraw> repeated_;
};

// What wd/random.h calls.
void note_draw(const std::uint32_t (&random)[3], int agent, int purpose);

}  // namespace wd::emulation
