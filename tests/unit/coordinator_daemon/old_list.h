/* SPDX-License-Identifier: Apache-2.0
 * A store whose lists show what was there a while ago, as Swift's do when it has much to do. For
 * programs that are linked with --wrap=objects_list. */
#ifndef CADRE_TESTS_UNIT_COORDINATOR_DAEMON_OLD_LIST_H
#define CADRE_TESTS_UNIT_COORDINATOR_DAEMON_OLD_LIST_H

#include "coordinator/daemon/objects/objects.h"

/* From now on lists show what there is now below the root, until lists_go_on(). */
void lists_stop(struct objects *objects, const char *root);
/* Without lists_stop() nothing. */
void lists_go_on(void);

#endif
