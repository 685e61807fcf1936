// trust.h: whether a configuration in the folder of a run may start its environment in Python, or compile its
// environment from a source file. Either is code like any other, and may be somebody else's.
#pragma once

#include "wd/config.h"
#include "wd/environment.h"

namespace wd::outside {

// Whether the file belongs to a run: as the sources say, or by what lies beside it.
bool is_of_run(const ConfigSources& sources);

// Throws UsageError with the name and the command if sources.of_run, the environment is in Python, and
// none of these holds: this user began a run with the same name, arguments, interpreter and pickled file; the
// command line names the environment (and the interpreter and the wrappers, if there are any);
// sources.trusted.
void require_trust(const ConfigSources& sources, const Environment& environment);

// The same before a source file is compiled or loaded: this user must have begun a run with a file of that
// path, which is not in the folder of this run, since it came with that.
void require_trust(const ConfigSources& sources, const std::string& source);

// Notes outside of all runs that this user has begun one with this environment, whose Config::name is `name`:
// in $XDG_STATE_HOME/wd/begun, or ~/.local/state/wd/begun.
void remember(const Environment& environment, const std::string& name);

}  // namespace wd::outside
