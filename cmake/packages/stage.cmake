# What a .deb and a .rpm want beside the installed tree; CPack runs this on the staged files (cmake/Package.cmake).

# rpm looks for what a library provides and needs only where it may be executed; CMake on Debian installs libraries without.
if(CPACK_GENERATOR STREQUAL "RPM")
  file(GLOB_RECURSE libraries ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.so ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.so.*)
  file(CHMOD ${libraries} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
set(doc ${share}/doc/molsieve)

# copyright replaces the texts of licences that Debian has in common-licenses.
file(COPY ${CPACK_MOLSIEVE_SOURCE}/cmake/packages/copyright DESTINATION ${doc})
file(REMOVE_RECURSE ${doc}/LICENSE ${doc}/LICENSES)

string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC) # of SOURCE_DATE_EPOCH, if it is set
file(WRITE ${doc}/changelog "molsieve (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Changes are in CHANGELOG.md, beside this file.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
file(WRITE ${share}/lintian/overrides/molsieve
"# One package for the programs and the C library, which is used beside them.
molsieve: package-name-doesnt-match-sonames *
molsieve: link-to-shared-library-in-wrong-package *
# Its place does not depend on the processor, so that the tree may be moved.
molsieve: pkg-config-unavailable-for-cross-compilation *
# CPack writes these beside the trigger.
molsieve: maintscript-calls-ldconfig *
# Users start molsieve, which starts its worker.
molsieve: no-manual-page *molsieve-chem*
")
execute_process(COMMAND gzip -9nf ${doc}/changelog ${share}/man/man1/molsieve.1 COMMAND_ERROR_IS_FATAL ANY)
