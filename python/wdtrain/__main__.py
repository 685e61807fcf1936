"""python -m wdtrain: the command wdtrain. With --cmake_dir alone, it prints where find_package(wd) looks: -D CMAKE_PREFIX_PATH=..."""

import sys

from wdtrain import installed, train

if sys.argv[1:] == ["--cmake_dir"]:
    print(installed.prefix())
else:
    train.main()
