// program.cpp: a program with one environment, as users write it.
#include <wd/main.h>

int main(int argc, char** argv) { return wd::main(argc, argv); }
