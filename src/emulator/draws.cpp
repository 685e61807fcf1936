// draws.cpp: remembers who drew which random number, and compares.
#include "src/emulator/draws.h"

#include "src/emulator/races.h"
#include "wd/emulator/emulation.h"
#include "wd/error.h"

namespace wd::emulation {

Draws& Draws::instance() {
  static Draws draws;
  return draws;
}

void Draws::enable(bool on) {
  enabled_ = on;
  drawn_.clear();
  repeated_.reset();
}

std::string Draws::text(const Draw& draw) {
  const std::string line = line_of(draw.caller);
  const std::string who = draw.item < 0    ? "code outside of phases"
                          : draw.other < 0 ? concat("f(", draw.item, ")")
                                           : concat("f(", draw.item, ", ", draw.other, ")");
  return line.empty() ? who : concat(who, " at ", line);
}

void Draws::note(const std::uint32_t (&random)[3], int agent, int purpose, const void* caller) {
  if (!enabled_ || repeated_) return;
  const Races::Item item = Races::instance().item();
  const Draw draw{caller, item.item, item.other, here.block.x, here.thread.x};
  const auto [found, is_new] = drawn_.try_emplace({random[0], random[1], random[2], agent, purpose}, draw);
  if (is_new) return;
  const Draw& first = found->second;
  const bool another_thread = first.block != draw.block || first.thread != draw.thread;
  if (first.item < 0 && draw.item < 0 && another_thread) {
    if (first.caller == draw.caller || line_of(first.caller) == line_of(draw.caller)) return;
  }
  repeated_ = RepeatedDraw{.replica = random[0],
                           .in_reset = random[2] == 0,
                           .agent = agent,
                           .purpose = purpose,
                           .first = text(first),
                           .second = text(draw)};
}

void note_draw(const std::uint32_t (&random)[3], int agent, int purpose) {
  Draws::instance().note(random, agent, purpose, __builtin_return_address(0));
}

}  // namespace wd::emulation
