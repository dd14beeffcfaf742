# What `make install` puts where: the programs, both libraries, the header, attend.pc and the CMake package. Both
# descriptions find their prefix relative to themselves, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

set_target_properties(attend_shared PROPERTIES EXPORT_NAME attend)
install(TARGETS attend RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS attend_static attend_shared EXPORT attendTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(AT_BENCH)
  install(TARGETS attend-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES bench/torch_worker.py bench/onnx_worker.js DESTINATION ${CMAKE_INSTALL_DATADIR}/attend/bench)
endif()
install(FILES include/attend.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

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

# The command writes its own manual page, from the table it reads its options by.
if(NOT CMAKE_CROSSCOMPILING)
  add_custom_command(OUTPUT attend.1 COMMAND attend help --man >attend.1 DEPENDS attend)
  add_custom_target(manual ALL DEPENDS attend.1)
  install(FILES ${CMAKE_BINARY_DIR}/attend.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
