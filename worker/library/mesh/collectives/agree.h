/* SPDX-License-Identifier: Apache-2.0
 * The second look at calls that are not equal. Texts are not part of a post, which keeps posting
 * cheap: since every slot has seen all posts, all of them come here, and write theirs only now. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_AGREE_H
#define CADRE_WORKER_MESH_COLLECTIVES_AGREE_H

#include "worker/library/mesh/agreement.h"
#include "worker/library/mesh/collectives/collective.h"

/* What is known of the host's calls when all of them are equal to this one. */
struct call_record mesh_agree_record(const struct replica *replica, const struct call *call);

/* What is known of them when they are not. OK, or the mesh has a fault. */
cadre_status mesh_agree_fold(
    struct replica *replica, const struct call *call, struct agreement *ret_agreement);

/* With one host: finds the sentence about the calls of this host's slots, the same in all of them,
 * and leaves it in replica->text: INVALID_ARGUMENT. Anything else: the mesh has a fault. */
cadre_status mesh_agree_explain(struct replica *replica, const struct call *call);

#endif
