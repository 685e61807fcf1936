// main.h: the whole program as one call, for wdtrain and for programs with environments of their own.
#pragma once

namespace wd {

// Runs the command line `wdtrain ...` with every environment that this program contains. Returns the exit
// code: 0 success, 2 user error, 1 any other failure, 128 + n ended by signal n. Call it first in main(): it
// sets MKL_CBWR, which makes the bits of torch modules reproducible, and MKL reads that variable only once.
int main(int argc, char** argv);

}  // namespace wd
