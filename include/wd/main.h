// main.h: the whole program as one call, for wdtrain and for programs that add environments of their own.
#pragma once

namespace wd {

// Runs the command line `wdtrain ...` with every environment that this program knows; returns the exit code:
// 0 done, 2 a mistake of the user, 1 any other failure, 128 + n ended by signal n. Call it first in main():
// it sets MKL_CBWR, which fixes the bits of matrix products, and MKL reads that once.
int main(int argc, char** argv);

}  // namespace wd
