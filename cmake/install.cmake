# What `make install` puts where: the programs, both libraries, the headers, attend.pc and the CMake package. Both
# descriptions find their prefix relative to themselves, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

set_target_properties(attend_shared PROPERTIES EXPORT_NAME attend)
install(TARGETS attend RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS attend_static attend_shared EXPORT attendTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(AT_BENCH)
  install(TARGETS attend-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES bench/torch_worker.py bench/onnx_worker.js bench/ctranslate2_worker.js DESTINATION ${CMAKE_INSTALL_DATADIR}/attend/bench)
endif()
install(FILES include/attend.h include/attend_unstable.h include/attend_server.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The Python package has nothing to compile; it is for a folder that Python searches.
set(AT_PYTHON_DIR "" CACHE STRING "Install the Python package into this folder; empty: not at all")
if(AT_PYTHON_DIR)
  install(DIRECTORY python/attend DESTINATION ${AT_PYTHON_DIR} PATTERN __pycache__ EXCLUDE)
endif()

# The documents and the examples, beside each other as in the tree, so that their links lead somewhere.
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY doc examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN "*.safetensors*" EXCLUDE PATTERN "*.runs" EXCLUDE
        PATTERN "test.out" EXCLUDE PATTERN "test.aligned" EXCLUDE PATTERN __pycache__ EXCLUDE)

# For systemd, which looks there in every prefix that it knows.
configure_file(cmake/attend-serve.service.in attend-serve.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/attend-serve.service DESTINATION lib/systemd/system)

file(RELATIVE_PATH PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PC_TO_PREFIX "${PC_TO_PREFIX}")
list(JOIN NEED_MODULES ", " PC_REQUIRES)
configure_file(cmake/attend.pc.in attend.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/attend.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

foreach(name module IN ZIP_LISTS NEED_NAMES NEED_MODULES)
  string(APPEND FIND_NEEDS "pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})\n")
endforeach()
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/attend)
configure_package_config_file(cmake/attendConfig.cmake.in attendConfig.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file(attendConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/attendConfig.cmake ${CMAKE_BINARY_DIR}/attendConfigVersion.cmake DESTINATION ${PACKAGE_DIR})
install(EXPORT attendTargets NAMESPACE attend:: DESTINATION ${PACKAGE_DIR})

# The command writes its own man pages and completion scripts, from its tables of options. Each cli/cmd_X.c is
# a command X.
if(NOT CMAKE_CROSSCOMPILING)
  set(MAN ${CMAKE_BINARY_DIR}/man)
  file(MAKE_DIRECTORY ${MAN})
  add_custom_command(OUTPUT ${MAN}/attend.1 COMMAND attend help --man >${MAN}/attend.1 DEPENDS attend)
  set(PAGES ${MAN}/attend.1)
  file(GLOB command_files CONFIGURE_DEPENDS cli/cmd_*.c)
  foreach(file ${command_files})
    get_filename_component(name ${file} NAME_WE)
    string(REGEX REPLACE "^cmd_" "" name ${name})
    set(page ${MAN}/attend-${name}.1)
    add_custom_command(OUTPUT ${page} COMMAND attend help --man ${name} >${page} DEPENDS attend)
    list(APPEND PAGES ${page})
  endforeach()
  set(script ${CMAKE_SOURCE_DIR}/cmake/header_man.awk)
  set(header ${CMAKE_SOURCE_DIR}/include/attend.h)
  add_custom_command(OUTPUT ${MAN}/attend.h.3 DEPENDS ${script} ${header}
                     COMMAND awk -v version=${PROJECT_VERSION} -f ${script} ${header} >${MAN}/attend.h.3)
  set(COMPLETIONS ${CMAKE_BINARY_DIR}/attend.bash ${CMAKE_BINARY_DIR}/_attend)
  add_custom_command(OUTPUT ${COMPLETIONS} DEPENDS attend
                     COMMAND attend help --completion bash >${CMAKE_BINARY_DIR}/attend.bash
                     COMMAND attend help --completion zsh >${CMAKE_BINARY_DIR}/_attend)
  add_custom_target(manual ALL DEPENDS ${PAGES} ${MAN}/attend.h.3 ${COMPLETIONS})
  install(FILES ${PAGES} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${MAN}/attend.h.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
  install(FILES ${CMAKE_BINARY_DIR}/attend.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME attend)
  install(FILES ${CMAKE_BINARY_DIR}/_attend DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
