# `cmake --install`: the component `program` (carnot, recipes, completions, manual page) and the component `library`
# (headers, static libraries, a CMake package). docs/install.md has the layout.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Where the installed program looks for LibTorch, from its own folder: a link, or a copy.
set(CARNOT_LIBTORCH_LINK ${CMAKE_INSTALL_LIBDIR}/carnot/libtorch)
set(CARNOT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Carnot)

# A room as Carnot::ROOM, in the build too. Rooms without LibTorch are a separate set, which does not need it.
function(carnot_install_room name path torch)
  add_library(Carnot::${name} ALIAS carnot_${name})
  set_target_properties(carnot_${name} PROPERTIES EXPORT_NAME ${name})
  get_target_property(type carnot_${name} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    target_compile_features(carnot_${name} INTERFACE cxx_std_20)
  else()
    target_compile_features(carnot_${name} PUBLIC cxx_std_20)
  endif()
  set(rooms CarnotRooms)
  if(torch)
    set(rooms CarnotTorchRooms)
  endif()
  install(TARGETS carnot_${name} EXPORT ${rooms}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${path}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${path}
    COMPONENT library FILES_MATCHING PATTERN "*.h")
endfunction()

function(carnot_install_program target)
  file(RELATIVE_PATH libtorch /${CMAKE_INSTALL_BINDIR} /${CARNOT_LIBTORCH_LINK}/lib)
  set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN/${libtorch})
  # A LibTorch that lacks a symbol stops the program when it starts, not hours later.
  target_link_options(${target} PRIVATE -Wl,-z,now)
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/recipes ${CMAKE_SOURCE_DIR}/python
    DESTINATION ${CMAKE_INSTALL_DATADIR}/carnot COMPONENT program PATTERN __pycache__ EXCLUDE)
  install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/NOTICE
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
  install(FILES ${CMAKE_SOURCE_DIR}/third_party/uplot/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}
    RENAME LICENSE.uPlot COMPONENT program)
  install(PROGRAMS ${CMAKE_SOURCE_DIR}/tools/install_libtorch.sh DESTINATION ${CMAKE_INSTALL_LIBDIR}/carnot
    RENAME install_libtorch COMPONENT program)

  # The program writes these itself.
  set(written "")
  foreach(file "man:${CMAKE_INSTALL_MANDIR}/man1/carnot.1"
               "completion bash:${CMAKE_INSTALL_DATADIR}/bash-completion/completions/carnot"
               "completion fish:${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/carnot.fish")
    string(REGEX MATCH "^(.*):(.*)$" parts ${file})
    string(REPLACE " " ";" arguments ${CMAKE_MATCH_1})
    set(path ${CMAKE_MATCH_2})
    list(JOIN arguments "_" name)
    string(APPEND written "
      execute_process(COMMAND \"$<TARGET_FILE:${target}>\" ${arguments}
        OUTPUT_FILE \"${CMAKE_BINARY_DIR}/${name}\" COMMAND_ERROR_IS_FATAL ANY)
      get_filename_component(folder \"/${path}\" DIRECTORY)
      get_filename_component(file \"/${path}\" NAME)
      file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}\${folder}\" TYPE FILE
        FILES \"${CMAKE_BINARY_DIR}/${name}\" RENAME \"\${file}\")")
  endforeach()
  string(REPLACE ";" " " written "${written}")
  install(CODE "${written}" COMPONENT program)

  # Packages leave this out: where LibTorch is on another machine is unknown.
  install(CODE "
    set(link \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CARNOT_LIBTORCH_LINK}\")
    if(NOT EXISTS \"\${link}\")
      get_filename_component(folder \"\${link}\" DIRECTORY)
      file(MAKE_DIRECTORY \"\${folder}\")
      file(CREATE_LINK \"${LibTorch_ROOT_DIR}\" \"\${link}\" SYMBOLIC)
      message(STATUS \"Link: \${link} -> ${LibTorch_ROOT_DIR}\")
    endif()" COMPONENT libtorch_link)
endfunction()

# find_package(Carnot): the two sets of rooms, and what they need.
function(carnot_install_package)
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/CarnotConfig.cmake.in ${CMAKE_BINARY_DIR}/CarnotConfig.cmake
    INSTALL_DESTINATION ${CARNOT_PACKAGE_DIR} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/CarnotConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/CarnotConfig.cmake ${CMAKE_BINARY_DIR}/CarnotConfigVersion.cmake
    ${CMAKE_SOURCE_DIR}/cmake/FindLibTorch.cmake DESTINATION ${CARNOT_PACKAGE_DIR} COMPONENT library)
  foreach(rooms CarnotRooms CarnotTorchRooms)
    install(EXPORT ${rooms} NAMESPACE Carnot:: DESTINATION ${CARNOT_PACKAGE_DIR} COMPONENT library)
  endforeach()
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DATADIR}/carnot COMPONENT library)
endfunction()
