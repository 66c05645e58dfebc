/* SPDX-License-Identifier: Apache-2.0
 * The second comparison, of calls that are not equal. Texts are not part of a post, because posting
 * must stay cheap. Every slot has seen all posts, so all slots come here, and write their texts
 * only now. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_AGREE_H
#define CADRE_WORKER_MESH_COLLECTIVES_AGREE_H

#include "worker/library/mesh/agreement.h"
#include "worker/library/mesh/collectives/collective.h"

/* The state of the host's calls when all of them are equal to this one. */
struct call_record mesh_agree_record(const struct replica *replica, const struct call *call);

/* The state of the host's calls when they differ. OK, or the mesh has a fault. */
cadre_status mesh_agree_fold(
    struct replica *replica, const struct call *call, struct agreement *ret_agreement);

/* With one host: leaves the sentence about the calls of this host's slots, the same in all of them,
 * in replica->text: INVALID_ARGUMENT. Anything else: the mesh has a fault. */
cadre_status mesh_agree_explain(struct replica *replica, const struct call *call);

#endif
