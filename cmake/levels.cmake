# Which instruction sets the kernels of core/simd are compiled for.
#
#   simd_levels      v2, v3, v4 of x86-64, or base
#   include/levels.hpp   in the build folder: GS_LEVELS(X): X(number, name) for each of them, in the order of their numbers
#
# GPUSPLU_LEVELS says which: a list, or "all", as in wheels; "native" is the best that this machine has, and all that an
# install from the sources has. On a processor without it such a copy says so when it is imported.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT CMAKE_OSX_ARCHITECTURES MATCHES "arm64")
  if(DEFINED SKBUILD AND NOT CMAKE_CROSSCOMPILING)
    set(default_levels native)
  else()
    set(default_levels all)
  endif()
  set(GPUSPLU_LEVELS "${default_levels}" CACHE STRING "Some of v2, v3, v4 and native; or all")
  if(GPUSPLU_LEVELS STREQUAL all)
    set(simd_levels v2 v3 v4)
  else()
    set(simd_levels ${GPUSPLU_LEVELS})
    if("native" IN_LIST simd_levels)
      try_run(native_level compiled ${CMAKE_CURRENT_BINARY_DIR}/native ${CMAKE_CURRENT_LIST_DIR}/native_level.cpp)
      if(NOT compiled OR NOT native_level MATCHES "^[234]$")
        message(FATAL_ERROR "GPUSPLU_LEVELS has native, and what this machine has cannot be found: ${native_level}")
      endif()
      list(TRANSFORM simd_levels REPLACE "^native$" "v${native_level}")
      list(REMOVE_DUPLICATES simd_levels)
    endif()
    list(SORT simd_levels)
  endif()
  target_compile_options(core PUBLIC -march=x86-64-v2)
else()
  set(simd_levels base)
endif()

set(list_of_levels "")
foreach(level ${simd_levels})
  string(REPLACE v "" number ${level})
  string(REPLACE base 0 number ${number})
  string(APPEND list_of_levels " X(${number}, ${level})")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/include/levels.hpp @ONLY
     CONTENT "// Made by cmake/levels.cmake.\n#define GS_LEVELS(X)@list_of_levels@\n")
message(STATUS "Kernels for: ${simd_levels}")
