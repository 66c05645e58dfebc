/* SPDX-License-Identifier: Apache-2.0
 * Small files with two random numbers, which are both 0 nowhere: STATE/leads has the nonce with
 * which this coordinator's process leads, for --resign once it is dead; STATE/process has the
 * processes that may have written this coordinator's key in etcd; CONTENTS/cluster has the number
 * of the cluster whose folder it is, CONTENTS/folder that of the folder. CONTENTS may be a path of
 * an object store: there a file is an object, which is asked for until it is there, and then known.
 * On the loop, which waits. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_NONCE_FILE_H
#define CADRE_COORDINATOR_DAEMON_SHARED_NONCE_FILE_H

#include "common/base/error.h"
#include "coordinator/leadership/log_store.h"

#define NONCE_FILE_LEADS   "leads"
#define NONCE_FILE_PROCESS "process"
#define NONCE_FILE_CLUSTER "cluster"
#define NONCE_FILE_FOLDER  "folder"

/* Durably, in place of what was there. */
cadre_status nonce_file_write(
    const char *folder, const char *name, struct log_nonce nonce, struct cadre_error *error);
/* Durably, unless there is such a file: of two that come at once one writes it. OK also then. */
cadre_status nonce_file_write_once(
    const char *folder, const char *name, struct log_nonce nonce, struct cadre_error *error);
/* *ret_nonce is 0 if there is no such file. DATA_LOSS: it holds something else. */
cadre_status nonce_file_read(
    const char *folder, const char *name, struct log_nonce *ret_nonce, struct cadre_error *error);
void nonce_file_remove(const char *folder, const char *name);

#endif
