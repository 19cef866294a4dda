# What `cmake --install` puts below the prefix (docs/INSTALL.md). Plugins install themselves, in
# lib/molsieve; the program finds all of it from its own place, so the tree may be moved.
include(GNUInstallDirs)
set(share ${CMAKE_INSTALL_DATADIR})

install(TARGETS molsieve molsieve-chem)
install(DIRECTORY workflows configs DESTINATION ${share}/molsieve PATTERN runs EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/molsieve.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/molsieve.bash DESTINATION ${share}/bash-completion/completions RENAME molsieve)
install(FILES ${PROJECT_BINARY_DIR}/_molsieve DESTINATION ${share}/zsh/site-functions)
install(FILES ${PROJECT_BINARY_DIR}/molsieve.fish DESTINATION ${share}/fish/vendor_completions.d)
install(FILES cmake/modulefile DESTINATION ${share}/modulefiles/molsieve RENAME ${PROJECT_VERSION})
install(FILES README.md CHANGELOG.md CONTRIBUTING.md CITATION.cff LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs LICENSES DESTINATION ${CMAKE_INSTALL_DOCDIR})

# A package that carries Open Babel's library (scripts/wheel) also needs its plug-ins and tables; molsieve-chem finds them here.
option(MOLSIEVE_BUNDLE "Install Open Babel's plug-ins and tables beside the program" OFF)
if(MOLSIEVE_BUNDLE)
  install(DIRECTORY ${OPENBABEL_LIBDIR}/openbabel/${OPENBABEL_VERSION}/ DESTINATION lib/molsieve/openbabel)
  install(DIRECTORY ${OPENBABEL_PREFIX}/share/openbabel/${OPENBABEL_VERSION}/ DESTINATION ${share}/molsieve/openbabel)
endif()

# The C library (docs/C-LIBRARY.md), for pkg-config and find_package(molsieve_predict). Its files may be moved, too. Not in a Python wheel.
if(NOT SKBUILD)
  include(CMakePackageConfigHelpers)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/molsieve_predict)
  file(RELATIVE_PATH UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" UP ${UP})
  configure_file(cmake/molsieve_predict.pc.in ${PROJECT_BINARY_DIR}/molsieve_predict.pc @ONLY)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/molsieve_predict-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(TARGETS molsieve_predict EXPORT molsieve_predict
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES stages/library/molsieve_predict.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  install(FILES ${PROJECT_BINARY_DIR}/molsieve_predict.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
  install(FILES ${PROJECT_BINARY_DIR}/molsieve_predict-config-version.cmake DESTINATION ${package} COMPONENT development)
  install(EXPORT molsieve_predict FILE molsieve_predict-config.cmake NAMESPACE molsieve:: DESTINATION ${package}
          COMPONENT development)
endif()
