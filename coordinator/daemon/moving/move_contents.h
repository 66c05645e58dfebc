/* SPDX-License-Identifier: Apache-2.0
 * --copy-contents FROM: all that coordinators keep is copied from a folder into the object store of
 * --contents, or from a store into the folder of --contents (without it the state directory). It
 * goes on where a run before was cut off, checks hashes, and at its end marks FROM, so that no
 * coordinator goes on there. */
#ifndef CADRE_COORDINATOR_DAEMON_MOVING_MOVE_CONTENTS_H
#define CADRE_COORDINATOR_DAEMON_MOVING_MOVE_CONTENTS_H

#include "common/base/error.h"

struct daemon;

/* The state directory is locked, but with --ahead, which copies what does not change while
 * coordinators run, and marks nothing as copied. With --dry-run it says what would be copied, and
 * writes nothing. FAILED_PRECONDITION: a coordinator is at work on the folder, or there is
 * something else. */
cadre_status move_contents(struct daemon *daemon, struct cadre_error *error);

#endif
