/* SPDX-License-Identifier: Apache-2.0
 * Beside cadre/client.h, in libcadre-client: the coordinators of a cluster, and which one leads. */
#ifndef CADRE_CLIENT_COORDINATORS_H
#define CADRE_CLIENT_COORDINATORS_H

#include "cadre/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A coordinator. */
typedef struct cadre_coordinator {
    const char *name;
    const char *addresses; /* where it is reached, separated by commas; "": not known */
    const char *state; /* "follower", "candidate", "catching up", "leading", "suspended" (it leads
                        * and may not send now), "leaving", "refused", "away" (it has written
                        * nothing to etcd for some time) or "unknown" (the one that answers cannot
                        * read etcd now); a later version may have others */
    const char *text;  /* a sentence on why it is in that state; "": nothing to say */
    bool leads;        /* and its answers count now */
    uint64_t term;     /* number of the newest leadership that it knows; 0: none yet */
    uint64_t since_us; /* of that leadership: Unix time; 0: not known */
    uint64_t applied;  /* number of the newest entry of the shared log in its ledger; 0: none, or no
                        * log  is shared */
    uint64_t head;     /* of the newest entry that it knows */
    const char *version;
    uint64_t age_us; /* how old all this is; 0: the coordinator that answered says it of itself */
} cadre_coordinator;

/* The result of cadre_client_coordinators(). */
typedef struct cadre_coordinator_list {
    const cadre_coordinator *coordinators; /* by name */
    size_t count;
} cadre_coordinator_list;

/* The coordinators of the cluster, as the one that answers knows them, whether it leads or not: a
 * coordinator that shares no log is a list of one. UNIMPLEMENTED: it is of a version without this
 * call. */
CADRE_API cadre_status cadre_client_coordinators(
    cadre_client *client, cadre_coordinator_list **ret_coordinators, const cadre_then *then);

#ifdef __cplusplus
}
#endif
#endif
