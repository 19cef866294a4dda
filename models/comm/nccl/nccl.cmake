# Sums over NCCL, where nccl.h is: a plugin beside the program. Included by models/cuda,
# which knows nvcc. NCCL_ROOT names a place; Debian's libnccl-dev and the toolkit's folders
# are found without.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} ENV NCCL_ROOT ENV NCCL_HOME ${CUDAToolkit_INCLUDE_DIRS}
  PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 NAMES_PER_DIR HINTS ${NCCL_ROOT} ENV NCCL_ROOT ENV NCCL_HOME ${CUDAToolkit_LIBRARY_DIR}
  PATH_SUFFIXES lib lib64)
if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
  return()
endif()
file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_config REGEX "NCCL_CONFIG_INITIALIZER")
if(NOT nccl_config)
  message(STATUS "NCCL in ${NCCL_INCLUDE_DIR} is older than 2.14: no libmolsieve_nccl.so")
  return()
endif()
get_filename_component(nccl_folder ${NCCL_LIBRARY} DIRECTORY)

add_library(molsieve_nccl MODULE ${PROJECT_SOURCE_DIR}/models/comm/nccl/nccl.c ${PROJECT_SOURCE_DIR}/models/comm/nccl/add.cu)
target_include_directories(molsieve_nccl PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(molsieve_nccl SYSTEM PRIVATE ${NCCL_INCLUDE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(molsieve_nccl PRIVATE molsieve::models molsieve::base molsieve::warnings ${NCCL_LIBRARY} ZLIB::ZLIB)
target_link_options(molsieve_nccl PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(molsieve_nccl PROPERTIES CUDA_RUNTIME_LIBRARY Static LINKER_LANGUAGE CUDA
  C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} BUILD_RPATH "${nccl_folder}" INSTALL_RPATH "${nccl_folder}")
install(TARGETS molsieve_nccl LIBRARY DESTINATION lib/molsieve)
