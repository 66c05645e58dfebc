/* SPDX-License-Identifier: Apache-2.0
 * How a task gets the whole roster of a large generation: from its parent in a tree of the ranks,
 * and its children from it (common/model/roster_tree.h). Strategies and plain programs call it
 * before they form the mesh. */
#ifndef CADRE_RUNTIME_ROSTER_SPREAD_H
#define CADRE_RUNTIME_ROSTER_SPREAD_H

#include "worker/library/runtime/task/membership.h"

/* Completes a roster of which the plan had a part; one that is whole already stays as it is. Waits
 * for the parent and, in turn, each child. The errors of a mesh that does not form: ABORTED when
 * the generation ends meanwhile. Waits are reported where membership->stalled is set. */
cadre_status roster_spread(const struct membership *membership, struct task *task,
    struct task_roster *roster, struct cadre_error *error);

#endif
