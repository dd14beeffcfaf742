# Cross-builds for 64-bit ARM with Debian's compilers. AT_SYSROOT holds the unpacked arm64 packages (tests/aarch64.sh
# fills it); programs run under qemu-aarch64 if it is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AT_SYSROOT)
set(libraries ${AT_SYSROOT}/usr/lib/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${AT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(headers "-isystem ${AT_SYSROOT}/usr/include -isystem ${AT_SYSROOT}/usr/include/aarch64-linux-gnu")
set(CMAKE_C_FLAGS_INIT "${headers}")
set(CMAKE_CXX_FLAGS_INIT "${headers}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-L${libraries} -Wl,-rpath-link,${libraries}")
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${AT_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${AT_SYSROOT})
# The C library is the cross compiler's; the other libraries are the sysroot's.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${libraries}:/usr/aarch64-linux-gnu/lib)
