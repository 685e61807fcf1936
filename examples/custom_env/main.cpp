// main.cpp: the whole program: wdtrain's commands with this project's environments.
#include <wd/main.h>

int main(int argc, char** argv) { return wd::main(argc, argv); }
