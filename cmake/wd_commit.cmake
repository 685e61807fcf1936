# wd_commit.cmake: a script that writes a source with the commit of the source tree, if it has changed:
# cmake -D SOURCE=FOLDER -D OUT=FILE -P wd_commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
  "#include \"src/run/start.h\"\nconst char* const wd::run::kCommit = \"${commit}\";\n")
