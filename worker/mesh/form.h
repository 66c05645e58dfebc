/* SPDX-License-Identifier: Apache-2.0
 * Forming: rank i connects to all lower ranks and admits all higher ones, by steps that never
 * block. A connection that is refused or ends is tried again after a pause (the other task may not
 * listen yet, or still be in an older generation); a peer that answers but cannot prove the key
 * ends the forming at once. */
#ifndef CADRE_WORKER_MESH_FORM_H
#define CADRE_WORKER_MESH_FORM_H

#include "worker/mesh/host.h"

/* For a mesh of several tasks; host->forming is the caller's to close also after an error. */
cadre_status mesh_form_open(struct host_mesh *host, struct cadre_error *error);

/* One step; the caller has seen that there is no fault. CADRE_PENDING, or CADRE_OK once all
 * connections stand, or the code of the fault it raised. */
cadre_status mesh_form_step(struct host_mesh *host);

/* After a fault: ends all connections, so that the other tasks need not wait to hear of it. For the
 * thread that polls, before the mesh has formed. */
void mesh_form_drop(struct host_mesh *host);

int mesh_form_watch_fd(const struct host_mesh *host);

/* Connections that already stand are the peers' and stay open; accepts NULL. */
void mesh_form_close(struct forming *forming);

#endif
