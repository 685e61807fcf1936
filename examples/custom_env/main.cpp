// main.cpp: the whole program: wdtrain's commands, with the environments of this project.
#include <wd/main.h>

int main(int argc, char** argv) { return wd::main(argc, argv); }
