# attend_records(OUT HEADER TYPE NAME FILES...): a C file OUT with the table of the records that FILES define. Each file
# NAME_x.c defines one, `const TYPE at_NAME_x`, and HEADER declares the table, `at_NAME_records`, which ends in NULL. So a
# new record is a new file and nothing else.
function(attend_records out header type name)
  set(externs "")
  set(rows "")
  foreach(file ${ARGN})
    get_filename_component(record ${file} NAME_WE)
    string(APPEND externs "extern const ${type} at_${record};\n")
    string(APPEND rows "    &at_${record},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "/* Written by CMake (cmake/records.cmake) from the names of the files ${name}_*.c. */
#include \"@header@\"

@externs@
const @type@ *const at_@name@_records[] = {
@rows@    0,
};
")
endfunction()
