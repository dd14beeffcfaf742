# Builds for WebAssembly with Debian's emscripten. AT_SYSROOT holds what the library needs, compiled for it (wasm/needs.sh
# fills it). There are no threads, no files beyond those in memory, and no server: see wasm/CMakeLists.txt.
include(/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AT_SYSROOT)
set(CMAKE_C_FLAGS_INIT "-isystem ${AT_SYSROOT}/include")
set(CMAKE_CXX_FLAGS_INIT "-isystem ${AT_SYSROOT}/include")
set(ENV{PKG_CONFIG_LIBDIR} ${AT_SYSROOT}/lib/pkgconfig)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${AT_SYSROOT}/lib")
