# Finds the CUDA Toolkit and NCCL's header, and says in one line what follows. Included by the CMakeLists.txt at the
# root, so that kernels can be compiled anywhere in the tree. Sets
#
#   CADRE_CUDA_FOUND     the language CUDA is enabled, and CUDA::cudart_static is there
#   CADRE_NCCL_INCLUDE   the folder of nccl.h, or nothing
#
# Nothing of it is needed where there is no toolkit: no compiler for C++ either.
set(CADRE_CUDA AUTO CACHE STRING "build libcadre-cuda.so: AUTO (where a CUDA Toolkit is found), ON or OFF")
set_property(CACHE CADRE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(CADRE_CUDA_FOUND OFF)

# With ON a build that cannot have the plugin is an error; with AUTO it goes without.
macro(cadre_cuda_without reason)
  if(CADRE_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: ${reason}; libcadre-cuda.so is not built, and replicas on GPUs need it")
  else()
    message(FATAL_ERROR "CADRE_CUDA=${CADRE_CUDA}, but ${reason}. Name the compiler by CUDACXX or "
      "-DCMAKE_CUDA_COMPILER, or configure with -DCADRE_CUDA=OFF.")
  endif()
endmacro()

# Where nvcc is: CMake's own setting, then PATH, then where the toolkit installs itself.
macro(cadre_find_nvcc)
  if(CMAKE_CUDA_COMPILER)
    set(nvcc ${CMAKE_CUDA_COMPILER})
  elseif(DEFINED ENV{CUDACXX})
    set(nvcc $ENV{CUDACXX})
  else()
    find_program(CADRE_NVCC nvcc
      HINTS ${CUDAToolkit_ROOT}/bin $ENV{CUDAToolkit_ROOT}/bin $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin
      PATHS /usr/local/cuda/bin /opt/cuda/bin)
    set(nvcc ${CADRE_NVCC})
  endif()
endmacro()

if(NOT CADRE_CUDA)
  message(STATUS "CUDA: CADRE_CUDA=OFF; libcadre-cuda.so is not built, and replicas on GPUs need it")
  return()
endif()
cadre_find_nvcc()
if(NOT nvcc)
  cadre_cuda_without("no toolkit was found (no nvcc in PATH nor in /usr/local/cuda/bin)")
  return()
endif()

# Kernels copy and add: code for the data centre's GPUs, and PTX for what is between them and newer.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-real 90)
endif()
set(CMAKE_CUDA_COMPILER ${nvcc} CACHE FILEPATH "the compiler of CUDA")
include(CheckLanguage)
if(NOT CADRE_CUDA_WORKS STREQUAL nvcc)
  # A toolkit that does not go with this machine's host compiler must not break a build that can go without it.
  unset(CMAKE_CUDA_COMPILER CACHE)
  set(ENV{CUDACXX} ${nvcc})
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)
    cadre_cuda_without("${nvcc} does not compile here (CMakeFiles/CMakeError.log says why)")
    return()
  endif()
endif()
set(CADRE_CUDA_WORKS ${nvcc} CACHE INTERNAL "the compiler that was seen to work")
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
find_package(CUDAToolkit QUIET)
if(NOT TARGET CUDA::cudart_static)
  cadre_cuda_without("the toolkit of ${nvcc} has no libcudart_static.a")
  return()
endif()
if(CUDAToolkit_VERSION VERSION_LESS 12)
  cadre_cuda_without("the toolkit of ${nvcc} is of version ${CUDAToolkit_VERSION}, and 12.0 is the oldest for it")
  return()
endif()
set(CADRE_CUDA_FOUND ON)
set(CMAKE_CUDA_STANDARD 17)

find_path(CADRE_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
set(nccl "no NCCL header (nccl.h) was found, so sums go through the host's memory")
if(CADRE_NCCL_INCLUDE)
  file(STRINGS ${CADRE_NCCL_INCLUDE}/nccl.h parts REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) ")
  list(TRANSFORM parts REPLACE ".* " "")
  list(JOIN parts "." nccl)
  if(nccl VERSION_LESS 2.18)
    set(nccl "the NCCL header is of version ${nccl} and 2.18 is needed, so sums go through the host's memory")
    set(CADRE_NCCL_INCLUDE "")
  else()
    set(nccl "NCCL header ${nccl}")
  endif()
endif()
message(STATUS "CUDA: ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR} at ${CUDAToolkit_TARGET_DIR}, ${nccl}: "
  "libcadre-cuda.so is built")
