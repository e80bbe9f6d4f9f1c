# CPack: `cpack` in the build folder makes an archive of program and library, and a Debian package of each.

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_NAME carnot)
set(CPACK_PACKAGE_VENDOR "The Carnot authors")
set(CPACK_PACKAGE_CONTACT "The Carnot authors <carnot@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Reinforcement learning of language-model agents")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME carnot-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/CarnotPackageKinds.cmake)

set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME carnot)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "python3-venv, python3-pip, python3-pytest")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
  ${CMAKE_SOURCE_DIR}/cmake/debian/postinst ${CMAKE_SOURCE_DIR}/cmake/debian/postrm)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${LibTorch_ROOT_DIR}/lib)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
  "The program carnot, its recipes, completions and manual page. It needs LibTorch, which Debian does not have in this
version: /usr/lib/carnot/install_libtorch gets it, or make /usr/lib/carnot/libtorch a link to yours.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libcarnot-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS
  "libyaml-cpp-dev, nlohmann-json3-dev, libspdlog-dev, libfmt-dev, libpcre2-dev, libutf8proc-dev, liblzma-dev, libssl-dev,
libcli11-dev, libcpp-httplib-dev, libgumbo-dev, libnats-dev, pkg-config")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS "carnot")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
  "Headers, static libraries and a CMake package: find_package(Carnot), targets Carnot::run and others. Rooms that hold
tensors need LibTorch, as the package carnot does.")

include(CPack)
