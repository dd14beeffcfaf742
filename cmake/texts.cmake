# attend_texts(OUT NAME FILE ...): a C file OUT that defines the bytes of each FILE as the string NAME.
function(attend_texts out)
  set(texts "")
  while(ARGN)
    list(POP_FRONT ARGN name file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
    string(APPEND texts "extern const char ${name}[];\nconst char ${name}[] = \"${bytes}\";\n")
  endwhile()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "/* Made by CMake. */
@texts@")
endfunction()
