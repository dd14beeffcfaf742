# attend_embed(OUT FILES...): a C file OUT with the texts of the built-in comparisons, by name.
function(attend_embed out)
  set(texts "")
  set(rows "")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(name ${file} NAME_WE)
    string(MAKE_C_IDENTIFIER ${name} identifier)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
    string(APPEND texts "static const char ${identifier}[] = \"${bytes}\";\n")
    string(APPEND rows "    {\"${name}\", ${identifier}},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "/* Made by CMake from examples/compare. */
#include \"compare/compare.h\"

@texts@
static const compare_preset presets[] = {
@rows@};

const compare_preset *compare_preset_at(int index)
{
    return index >= 0 && index < (int)(sizeof presets / sizeof *presets) ? &presets[index] : 0;
}
")
endfunction()
