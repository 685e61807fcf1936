// main.cpp: the program wdtrain.
#include "wd/main.h"

#include <unistd.h>

#include <cstdio>

// All that must end in order has ended in wd::main(). What is left is torch's table of operators, which takes
// 0.2 s to destroy: as long as a short command.
int main(int argc, char** argv) {
  const int code = wd::main(argc, argv);
  std::fflush(nullptr);
  ::_exit(code);
}
