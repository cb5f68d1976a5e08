# What every target shares, and the one way a folder becomes a library.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Searched for once, and NOTFOUND is kept: another compiler launcher would rebuild everything.
if(NOT DEFINED CCACHE)
  find_program(CCACHE ccache)
endif()
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(twiddle_options INTERFACE)
add_library(twiddle::options ALIAS twiddle_options)
# GCC 12 and 13 see overlapping copies in "text" + std::string where there are none (GCC bug 105651): -Wno-restrict.
# GCC 13 and 14 take any function of two references for one that returns the wrong one: -Wno-dangling-reference.
set(false_alarms $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND false_alarms -Wno-dangling-reference)
endif()
set(warnings -Wall -Wextra -Wshadow -Wno-unknown-pragmas ${false_alarms} $<$<BOOL:${TWIDDLE_WERROR}>:-Werror>)
target_compile_options(twiddle_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:${warnings}>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wno-unknown-pragmas,-fopenmp$<$<BOOL:${TWIDDLE_WERROR}>:,-Werror>>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${TWIDDLE_WERROR}>>:-Werror=all-warnings>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xfatbin=-compress-all>)

# twiddle_library(NAME [FLOORS lower-folders...]): all sources of the current folder and its cpu/ or device subfolders.
# A .cu file holds one body for both devices: nvcc compiles it in a CUDA build, the C++ compiler in a CPU build.
# Device-only code lives in cuda/: taken in a CUDA build, where its no_cuda.cpp (the stubs) is left out.
function(twiddle_library name)
  cmake_parse_arguments(arg "" "" "FLOORS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
  if(TWIDDLE_WITH_CUDA)
    list(FILTER sources EXCLUDE REGEX "/no_cuda\\.cpp$")
  else()
    set(stubs ${sources})
    list(FILTER stubs INCLUDE REGEX "/no_cuda\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "/cuda/")
    list(APPEND sources ${stubs})
    set_source_files_properties(${stubs} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)  # a test links another one instead
    set(shared ${sources})
    list(FILTER shared INCLUDE REGEX "\\.cu$")
    set_source_files_properties(${shared} PROPERTIES LANGUAGE CXX)
  endif()
  add_library(twiddle_${name} STATIC ${sources})
  if(NOT TWIDDLE_WITH_CUDA)
    # For the target, not for its .cu files: a unity build leaves out files that have options of their own.
    target_compile_options(twiddle_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-xc++>)
  endif()
  add_library(twiddle::${name} ALIAS twiddle_${name})
  set_target_properties(twiddle_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(twiddle_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/twiddle>)
  target_compile_features(twiddle_${name} PUBLIC cxx_std_20)
  target_link_libraries(twiddle_${name} PRIVATE $<BUILD_INTERFACE:twiddle_options>)
  foreach(floor ${arg_FLOORS})
    target_link_libraries(twiddle_${name} PUBLIC twiddle_${floor})
  endforeach()
endfunction()

# Eight files of a folder are compiled as one, in a third of the time, since most of it goes into the headers. So names in
# anonymous namespaces differ within a folder.
macro(twiddle_several_at_once)
  set(CMAKE_UNITY_BUILD ${TWIDDLE_UNITY})
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
  if(TWIDDLE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)  # what is in no header seems to be in one
  endif()
endmacro()

# For a folder in which no time is spent when the program runs: -O1 compiles in two thirds of the time of -O3.
macro(twiddle_not_hot)
  twiddle_several_at_once()
  add_compile_options($<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endmacro()
