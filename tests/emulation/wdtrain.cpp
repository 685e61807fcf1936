// wdtrain.cpp: the program wdtrain, whose device `cuda` is the emulated GPU. Tests run commands with it as
// they run them on a GPU.
//
// WD_EMULATED_PROGRESS tells when the work of streams runs: immediate (the default), lazy or random.
#include <cstdlib>
#include <iostream>
#include <string>

#include "src/emulator/streams.h"
#include "wd/main.h"

int main(int argc, char** argv) {
  using wd::emulation::Progress;
  const char* const variable = std::getenv("WD_EMULATED_PROGRESS");
  const std::string progress = variable == nullptr ? "immediate" : variable;
  if (progress == "lazy") {
    wd::emulation::set_progress(Progress::kLazy);
  } else if (progress == "random") {
    wd::emulation::set_progress(Progress::kRandom);
  } else if (progress != "immediate") {
    std::cerr << "error: WD_EMULATED_PROGRESS=" << progress << ": immediate, lazy or random is needed\n";
    return 2;
  }
  return wd::main(argc, argv);
}
