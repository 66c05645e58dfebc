/* SPDX-License-Identifier: Apache-2.0
 * How the roster of a large generation reaches its tasks. The coordinator sends the whole one only
 * to the host of rank 0; the others get a part, with which each task finds its neighbours in a tree
 * of the ranks. It receives the whole roster from its parent, and passes it on to its children:
 *
 *                    0                     bytes of the coordinator, n members on h hosts
 *          1      2     3     4              whole rosters: n * h entries
 *       5 6 7 8   9 ...                      parts:         n + (2 + ROSTER_FAN_OUT) * n
 */
#ifndef CADRE_MODEL_ROSTER_TREE_H
#define CADRE_MODEL_ROSTER_TREE_H

#include "common/model/task_message.h"

#define ROSTER_FAN_OUT 4

/* Of a rank above 0. */
static inline uint32_t roster_parent(uint32_t rank)
{
    return (rank - 1) / ROSTER_FAN_OUT;
}

/* The children are the ROSTER_FAN_OUT ranks from this one on that there are. */
static inline uint32_t roster_first_child(uint32_t rank)
{
    return rank * ROSTER_FAN_OUT + 1;
}

/* The members of the plan's generation. */
static inline uint32_t plan_member_count(const struct task_plan *plan)
{
    return plan->members > 0 ? plan->members : (uint32_t)plan->roster_count;
}

/* The rank of the plan's entry at `index`. */
static inline uint32_t plan_rank(const struct task_plan *plan, size_t index)
{
    return plan->members > 0 ? plan->roster[index].rank : (uint32_t)index;
}

#endif
