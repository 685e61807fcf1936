// main.cpp: the whole program: wdtrain's commands, which also know this project's algorithm.
#include <wd/main.h>

int main(int argc, char** argv) { return wd::main(argc, argv); }
