# wd_pages.cmake: web pages as strings in the program.

# Compiles a page into the library as a C++ string: wd_embed_page(SYMBOL HEADER HTML MARK FILE ...). SYMBOL is
# declared in HEADER as `extern const char* const`. Each {{MARK}} of the page is replaced by the content of a
# file; references to source maps are left out, because a page must not request anything. Appends the source
# to the variable `sources`.
function(wd_embed_page symbol header html)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${html})
  file(READ ${html} page)
  set(parts ${ARGN})
  while(parts)
    list(POP_FRONT parts mark file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    string(REGEX REPLACE "/[/*]# sourceMappingURL=[^\n]*" "" text "${text}")
    string(REPLACE "{{${mark}}}" "${text}" page "${page}")
  endwhile()
  cmake_path(GET html PARENT_PATH folder)
  cmake_path(GET folder FILENAME folder)
  set(output ${PROJECT_BINARY_DIR}/pages/${folder}.cpp)
  set(text "#include \"${header}\"\nconst char* const ${symbol} = R\"page(${page})page\";\n")
  set(before "")
  if(EXISTS ${output})
    file(READ ${output} before)
  endif()
  if(NOT text STREQUAL before)
    file(WRITE ${output} "${text}")
  endif()
  set(sources ${sources} ${output} PARENT_SCOPE)
endfunction()

# The chart library of reports, which the Debian package libjs-dygraphs installs.
find_path(WD_DYGRAPHS_DIR dygraph.min.js PATHS /usr/share/javascript/dygraphs NO_DEFAULT_PATH
  DOC "Folder of dygraph.min.js and dygraph.min.css")
find_file(WD_DYGRAPHS_LICENSE copyright PATHS /usr/share/doc/libjs-dygraphs ${WD_DYGRAPHS_DIR} NO_DEFAULT_PATH
  DOC "License of dygraphs, which is embedded too")
if(NOT WD_DYGRAPHS_DIR OR NOT WD_DYGRAPHS_LICENSE)
  message(FATAL_ERROR "No dygraph.min.js, the chart library of `wdtrain report`, or no license of it: run "
    "./wd setup, install the Debian package libjs-dygraphs, or set WD_DYGRAPHS_DIR and WD_DYGRAPHS_LICENSE")
endif()
