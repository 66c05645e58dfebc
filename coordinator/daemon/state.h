/* SPDX-License-Identifier: Apache-2.0
 * The folders of a coordinator: its state directory, and that of contents. */
#ifndef CADRE_COORDINATOR_DAEMON_STATE_H
#define CADRE_COORDINATOR_DAEMON_STATE_H

#include "coordinator/store/store.h"

struct coordinator_options;
struct daemon;

/* Makes and locks the state directory, which one process uses at a time, and notes the paths in the
 * daemon. UNAVAILABLE: another process has it. */
cadre_status state_lock(struct daemon *daemon, struct cadre_error *error);
/* The same, and opens the ledger. */
cadre_status state_open(struct daemon *daemon, struct store **ret_store, struct cadre_error *error);

/* FAILED_PRECONDITION: --contents names an object store, and the state directory has contents that
 * were not copied to it. */
cadre_status state_check_none_left(
    const struct coordinator_options *options, struct cadre_error *error);

/* After it, where --contents is an object store: that, its copies, and threads. The store may be
 * away; what refuses the coordinator is an error, and so are contents that were copied
 * elsewhere, or were not copied to the end. */
cadre_status state_open_contents(struct daemon *daemon, struct cadre_error *error);
/* Once it leads, with a folder of --contents: holds a lock of it until the process ends, and looks
 * again whether the contents were copied elsewhere. FAILED_PRECONDITION: they were, or are being.
 */
cadre_status state_use_folder(struct daemon *daemon, struct cadre_error *error);
/* No thread may be at work. */
void state_close_contents(struct daemon *daemon);

#endif
