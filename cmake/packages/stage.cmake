# What a .deb and a .rpm want beside the installed tree; CPack runs this on the staged files (cmake/Package.cmake).

# rpm looks for what a library provides and needs only where it may be executed; CMake on Debian installs libraries without.
if(CPACK_GENERATOR STREQUAL "RPM")
  file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.so ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.so.*)
  file(CHMOD ${libraries} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(top ${CPACK_TEMPORARY_INSTALL_DIRECTORY})
set(usr ${CPACK_PACKAGING_INSTALL_PREFIX})
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, if it is set

# dress COMPONENT PACKAGE OVERRIDES: the files that Debian wants of each package
function(dress component package overrides)
  set(share ${top}/${component}${usr}/share)
  file(COPY ${CPACK_MOLSIEVE_SOURCE}/cmake/packages/copyright DESTINATION ${share}/doc/${package})
  file(WRITE ${share}/doc/${package}/changelog "molsieve (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Changes are in /usr/share/doc/molsieve/CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
  file(WRITE ${share}/lintian/overrides/${package} "${overrides}")
  execute_process(COMMAND gzip -9nf ${share}/doc/${package}/changelog COMMAND_ERROR_IS_FATAL ANY)
endfunction()

dress(program molsieve "# Users start molsieve, which starts its worker.
molsieve: no-manual-page *molsieve-chem*
# CPack writes them for plugins, too.
molsieve: maintscript-calls-ldconfig *
")
dress(library libmolsieve-predict0 "# CPack writes these beside the trigger.
libmolsieve-predict0: maintscript-calls-ldconfig *
")
dress(development libmolsieve-predict-dev "# Its place does not depend on the processor, so that the tree may be moved.
libmolsieve-predict-dev: pkg-config-unavailable-for-cross-compilation *
")
execute_process(COMMAND gzip -9nf ${top}/program${usr}/share/man/man1/molsieve.1 COMMAND_ERROR_IS_FATAL ANY)
# copyright replaces the texts of licences that Debian has in common-licenses.
file(REMOVE_RECURSE ${top}/program${usr}/share/doc/molsieve/LICENSE ${top}/program${usr}/share/doc/molsieve/LICENSES)
