/* SPDX-License-Identifier: Apache-2.0
 * STATE/leads: the nonce with which this coordinator's process leads, for --resign once it is dead.
 */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_LEADS_FILE_H
#define CADRE_COORDINATOR_DAEMON_SHARED_LEADS_FILE_H

#include "common/base/error.h"
#include "coordinator/leadership/log_store.h"

cadre_status leads_file_write(
    const char *state_dir, struct log_nonce nonce, struct cadre_error *error);
/* *ret_leads false: there is no such file, so the last process did not lead, or ended in order.
 * DATA_LOSS: it holds something else. */
cadre_status leads_file_read(
    const char *state_dir, bool *ret_leads, struct log_nonce *ret_nonce, struct cadre_error *error);
void leads_file_remove(const char *state_dir);

#endif
