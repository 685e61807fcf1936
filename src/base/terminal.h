// terminal.h: what is at the other end of a descriptor.
#pragma once

namespace wd::run {

constexpr const char* kEraseLine = "\r\x1b[K";  // back to column 1, clear to the end of the line

// A terminal that can redraw a line in place (TERM is set and is not "dumb").
bool is_live_terminal(int descriptor);

// A live terminal, and the user has not set NO_COLOR (no-color.org).
bool shows_colours(int descriptor);

// Columns now; 80 where the terminal does not say.
int terminal_width(int descriptor);

// Whether a write would not wait, now or within this time: a terminal may be stopped with Ctrl-S, a pipe's
// reader may pause. A pipe that nobody reads any more takes everything, as an error of the write.
bool takes_output(int descriptor, int milliseconds = 0);

}  // namespace wd::run
