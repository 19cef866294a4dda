# Packages: cpack -G DEB, RPM or TGZ in the build directory (scripts/packages-check builds and tries all three). Plugins that were built
# become part of the package and of what it depends on; -DMOLSIEVE_CUDA=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON leave them out.
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME molsieve)
set(CPACK_PACKAGE_VENDOR molsieve)
set(CPACK_PACKAGE_CONTACT "the authors of molsieve <molsieve@localhost>") # whoever builds a package for others names himself here
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "screens molecules: files in, ranked and queryable results out")
set(CPACK_PACKAGE_DESCRIPTION "Ranks libraries of small molecules by predicted properties, with an error estimate for each.
A run can be stopped at any moment and continues with the same result, bit for bit.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
if(CMAKE_INSTALL_PREFIX MATCHES "^/opt")
  set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
endif()

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libxgboost0, sqlite3")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND GPL-2.0-only") # the program; the chemistry worker
set(CPACK_RPM_PACKAGE_GROUP Applications/Engineering)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d /usr/share/modulefiles /usr/share/doc
    /usr/lib/pkgconfig /usr/lib/cmake /usr/include)
include(CPack)
