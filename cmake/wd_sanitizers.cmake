# wd_sanitizers.cmake: applies WD_SANITIZE to everything that is compiled here.
if(WD_SANITIZE)
  add_compile_options(-fsanitize=${WD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WD_SANITIZE})
  if(WD_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize=vptr)  # torch does not export all of its type information
  endif()
endif()
