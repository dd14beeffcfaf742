# What the compiler and the linker add against attacks through a memory error: checked buffer sizes and stacks, large frames
# that cannot jump over the guard page of a stack, programs at a random address, and tables of addresses that are
# read-only once the program runs. The sanitizers check more and
# replace the same functions, so their builds have only the linker's part.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)
check_pie_supported()
add_link_options(-Wl,-z,relro,-z,now)

if(NOT AT_SANITIZE AND NOT AT_TSAN AND NOT AT_FUZZ)
  add_compile_options(-fstack-protector-strong)
  set(CMAKE_REQUIRED_FLAGS -Werror) # some compilers only warn of an option that they do not have for a processor
  check_c_compiler_flag(-fstack-clash-protection AT_HAS_STACK_CLASH)
  unset(CMAKE_REQUIRED_FLAGS)
  if(AT_HAS_STACK_CLASH)
    add_compile_options(-fstack-clash-protection)
  endif()
  # Level 3 is for gcc 12, clang 9 and glibc 2.34 or later; the headers warn if it is too high. It needs an optimiser.
  set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
  check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" AT_HAS_FORTIFY_3)
  unset(CMAKE_REQUIRED_FLAGS)
  set(level $<IF:$<BOOL:${AT_HAS_FORTIFY_3}>,3,2>)
  add_compile_options($<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${level}>)
endif()
