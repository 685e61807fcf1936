// program.cpp: a program with one environment of its own, as a user's.
#include <wd/main.h>

int main(int argc, char** argv) { return wd::main(argc, argv); }
