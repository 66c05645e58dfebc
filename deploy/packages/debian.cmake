# The Debian packages, one for each component; build-packages runs cpack. debian-release.cmake is read by each cpack.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cadre)
set(CPACK_PACKAGE_VENDOR Cadre)
set(CPACK_PACKAGE_CONTACT "Cadre maintainers <maintainers@cadre.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL coordinator worker client runtime dev)
if(TARGET cadre_cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "")
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_SOURCE_DIR}/debian-release.cmake)

set(CPACK_DEBIAN_COORDINATOR_PACKAGE_NAME cadre-coordinator)
set(CPACK_DEBIAN_WORKER_PACKAGE_NAME cadre-worker)
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME cadre-client)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libcadre${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libcadre-dev)
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME cadre-cuda)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)

set(CPACK_DEBIAN_COORDINATOR_DESCRIPTION "coordinator of a Cadre training cluster
Queues jobs, places their tasks on workers, admits every step of a training
and keeps the ledger of what is committed. A cluster has one, or several that
share a ledger in etcd, of which one leads.")
set(CPACK_DEBIAN_WORKER_DESCRIPTION "worker of a Cadre training cluster
Joins a coordinator and runs tasks of its jobs on this host, each as a process
of its own; ships their logs and outputs.")
set(CPACK_DEBIAN_CLIENT_DESCRIPTION "command and client library of Cadre training clusters
The command cadre submits jobs to a cluster, follows them and fetches what
they leave; it runs programs on this host alone, too. libcadre-client is the
same for programs.")
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION "distributed training for C programs (library)
Strategies, datasets and collectives for programs that train on many
processes at once: by hand, or as a job of a Cadre cluster.")
set(CPACK_DEBIAN_DEV_DESCRIPTION "distributed training for C programs (headers)
What compiles programs with Cadre: headers, libcadre.a, pkg-config files, a
CMake package, examples, and the protocol's files for clients in other
languages.")
set(CPACK_DEBIAN_CUDA_DESCRIPTION "distributed training for C programs (CUDA devices)
The plugin with which replicas run on NVIDIA GPUs. It needs the driver, and
uses NCCL where it finds it.")

# Both daemons have the same scripts, each with its own unit and folders.
foreach(daemon coordinator worker)
  set(other worker)
  if(daemon STREQUAL "worker")
    set(other coordinator)
  endif()
  string(TOUPPER ${daemon} upper)
  set(scripts "")
  foreach(script postinst prerm postrm conffiles)
    configure_file(debian/${script}.in ${daemon}/${script} @ONLY)
    list(APPEND scripts ${CMAKE_CURRENT_BINARY_DIR}/${daemon}/${script})
  endforeach()
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${scripts})
endforeach()

# Of shared libraries: who links them depends on which package, and the linker's cache learns of them.
set(libraries_RUNTIME libcadre)
set(libraries_CLIENT libcadre-client)
foreach(component RUNTIME CLIENT)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${component})
  file(WRITE ${folder}/triggers "activate-noawait ldconfig\n")
  file(WRITE ${folder}/shlibs "${libraries_${component}} ${PROJECT_VERSION_MAJOR} \
${CPACK_DEBIAN_${component}_PACKAGE_NAME} (>= ${PROJECT_VERSION})\n")
  set(CPACK_DEBIAN_${component}_PACKAGE_CONTROL_EXTRA ${folder}/triggers ${folder}/shlibs)
endforeach()

# Policy wants these of each package: the licence, the packages' changes, the project's.
set(changes ${CMAKE_CURRENT_BINARY_DIR}/changelog)
configure_file(${CMAKE_SOURCE_DIR}/CHANGELOG.md ${changes} COPYONLY)
execute_process(COMMAND gzip -9nkf ${changes} COMMAND_ERROR_IS_FATAL ANY)
set(changelog ${CMAKE_CURRENT_BINARY_DIR}/changelog.Debian)
configure_file(debian/changelog.in ${changelog} @ONLY)
execute_process(COMMAND gzip -9nkf ${changelog} COMMAND_ERROR_IS_FATAL ANY)
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  install(FILES debian/copyright ${changelog}.gz ${changes}.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME} COMPONENT ${component})
endforeach()
# Where users of Debian look for examples.
file(CREATE_LINK ../../cadre/examples ${CMAKE_CURRENT_BINARY_DIR}/examples SYMBOLIC)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/examples
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_DEV_PACKAGE_NAME} COMPONENT dev)
include(CPack)
