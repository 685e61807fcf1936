// terminal.h: properties of the terminal or pipe behind a descriptor.
#pragma once

namespace wd {

// Erases what is live: the cursor rests in its first line. The space keeps tmux from saving the erased lines,
// which it does where the whole screen is erased.
constexpr const char* kEraseLive = "\r \x1b[J\r";

// Returns true if this is a terminal that can redraw a line in place (TERM is set and is not "dumb").
bool is_live_terminal(int descriptor);

// Returns true if this is a live terminal and the user has not set NO_COLOR (no-color.org).
bool shows_colours(int descriptor);

// Current number of columns, or 80 if the terminal does not report it.
int terminal_width(int descriptor);

// Current number of rows, or 24 if the terminal does not report it.
int terminal_height(int descriptor);

// Returns whether a write of one byte would not block: a terminal may be stopped with Ctrl-S,
// and the reader of a pipe may pause. A pipe without a reader counts as accepting output, because the write
// fails at once.
bool takes_output(int descriptor);

}  // namespace wd
