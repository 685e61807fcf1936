// main.cpp: the program wdtrain.
#include "wd/main.h"

int main(int argc, char** argv) { return wd::main(argc, argv); }
