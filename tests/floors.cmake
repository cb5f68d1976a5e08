# The house's floors: a folder includes only what its row allows, and each outside package is seen by the files of its row alone.
# usage: cmake -DSOURCE=<root> -P floors.cmake
cmake_minimum_required(VERSION 3.24)
set(may_include_framework framework)
set(may_include_fft framework fft)
set(may_include_data framework data)
set(may_include_layers framework fft layers)
set(may_include_models framework fft data layers models)
set(may_include_apps framework fft data layers models apps)
set(may_include_python framework fft layers python)

# "HEADER-PREFIX REGEX": the files that may include it
set(packages
  "yaml-cpp/ ^models/config/yaml\\.cpp$"
  "CLI/ ^apps/"
  "spdlog/ ^apps/"
  "nlohmann/ ^(models|apps)/"
  "xxhash ^models/"
  "oneapi/ ^(framework/cpu/gemm\\.cpp|layers/conv/engines/onednn_[a-z]+\\.(h|cpp))$"
  "dnnl ^(framework/cpu/gemm\\.cpp|layers/conv/engines/onednn_[a-z]+\\.(h|cpp))$"
  "mpi ^framework/ranks/mpi_communicator\\.cpp$"
  "torch/ ^python/"
  "stb/ ^data/images/stb_image\\.cpp$"
  "turbojpeg ^data/images/turbojpeg\\.cpp$"
  "zlib ^data/"
  "cuda /cuda/"
  "cublas /cuda/"
  "cufft ^(fft|apps/bench|python/src)/cuda/"
  "cudnn ^layers/conv/engines/cudnn_[a-z]+\\.(h|cpp)$")

# twiddle-bench is a separate program: no other file of apps/ includes from apps/bench/. From apps/ it includes what every verb
# uses to read and show things, and nothing of a training run.
set(bench_may_see "^(bench/[a-z0-9_/]+|command_line/[a-z_]+|ranks/[a-z_]+|report/html|report/svg|verbs/iteration_timer|verbs/open|verbs/verbs|version)$")

set(breaches "")
foreach(folder framework fft data layers models apps python)
  file(GLOB_RECURSE files RELATIVE ${SOURCE} ${SOURCE}/${folder}/*.h ${SOURCE}/${folder}/*.cpp ${SOURCE}/${folder}/*.cu ${SOURCE}/${folder}/*.cuh)
  foreach(file ${files})
    file(STRINGS ${SOURCE}/${file} includes REGEX "^[ \t]*#[ \t]*include")
    foreach(line ${includes})
      if(line MATCHES "\"\\.")
        list(APPEND breaches "${file}: write the path from the root on: ${line}")
      endif()
      if(line MATCHES "\"([a-z]+)/")
        set(target ${CMAKE_MATCH_1})
        if(NOT target IN_LIST may_include_${folder})
          list(APPEND breaches "${file}: a file of ${folder}/ must not include from ${target}/: ${line}")
        endif()
      endif()
      if(line MATCHES "\"apps/(.*)\\.h\"")
        set(header ${CMAKE_MATCH_1})
        if(file MATCHES "^apps/bench/" AND NOT header MATCHES "${bench_may_see}")
          list(APPEND breaches "${file}: a file of apps/bench/ must not see this one of apps/: ${line}")
        elseif(header MATCHES "^bench/" AND NOT file MATCHES "^apps/bench/")
          list(APPEND breaches "${file}: only files of apps/bench/ may include from there: ${line}")
        endif()
      endif()
      foreach(package ${packages})
        string(REGEX REPLACE " .*" "" header "${package}")
        string(REGEX REPLACE "^[^ ]* " "" allowed "${package}")
        if(line MATCHES "[<\"]${header}" AND NOT file MATCHES "${allowed}")
          list(APPEND breaches "${file}: only ${allowed} may see ${header}: ${line}")
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()
if(breaches)
  list(JOIN breaches "\n  " text)
  message(FATAL_ERROR "includes that breach the floors:\n  ${text}")
endif()
