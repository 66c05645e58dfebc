# Read by each run of cpack: the packages need each other in the very version that is being made, and its last part is
# that run's (CADRE_RELEASE=2 build-packages).
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
if(DEFINED ENV{CADRE_RELEASE})
  set(CPACK_DEBIAN_PACKAGE_RELEASE $ENV{CADRE_RELEASE})
endif()
set(same "(= ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
# Either of systemd, or in a container its two programs that the scripts use.
set(service "init-system-helpers (>= 1.54~), systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles")
set(runtime "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} ${same}")

set(CPACK_DEBIAN_COORDINATOR_PACKAGE_DEPENDS "${service}")
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_RECOMMENDS "cadre-client")
# Where several coordinators share a ledger; on hosts of its own, or on theirs.
set(CPACK_DEBIAN_COORDINATOR_PACKAGE_SUGGESTS "etcd-server, etcd-client")
# cadre-devices is the client's; programs that were linked with the shared library find it on every worker.
set(CPACK_DEBIAN_WORKER_PACKAGE_DEPENDS "${service}, cadre-client ${same}, ${runtime}")
set(CPACK_DEBIAN_WORKER_PACKAGE_SUGGESTS "cadre-cuda")
set(CPACK_DEBIAN_CLIENT_PACKAGE_SUGGESTS "cadre-cuda")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
  "${runtime}, cadre-client ${same}, libc6-dev, libprotobuf-c-dev, libisal-dev, libxxhash-dev, libjansson-dev, \
libssl-dev, libcurl4-openssl-dev, libexpat1-dev")
# For `cc fit.c $(pkg-config ...)` and the Makefiles of `cadre new`.
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "gcc | c-compiler, make, pkg-config")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "cmake")
set(CPACK_DEBIAN_CUDA_PACKAGE_ENHANCES "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME}")
