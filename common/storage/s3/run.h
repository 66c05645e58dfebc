/* SPDX-License-Identifier: Apache-2.0
 * Requests until they succeed: several of one call at a time, each repeated after pauses, and reads
 * that take long asked for a second time, all from the calling thread. */
#ifndef CADRE_STORAGE_S3_RUN_H
#define CADRE_STORAGE_S3_RUN_H

#include "common/storage/s3/request.h"

#define S3_RUN_WIDTH 4 /* requests of one call at a time, without the second ones */

/* Asks for all of them, in order, up to S3_RUN_WIDTH at a time where connections are free, and
 * waits until all succeeded or one failed for good, which ends the others. Each has the session's
 * deadline, from when it is first sent. Whatever comes back, the answers of all are the caller's to
 * free. */
cadre_status s3_run(
    struct s3_session *session, struct s3_ask *asks, size_t count, struct cadre_error *error);
/* One request whose answer is XML of a kind, which is read: an answer that is not whole is asked
 * for again. On success *ret_answer is the caller's to free; ask->answer is empty. */
cadre_status s3_ask_parsed(struct s3_session *session, struct s3_ask *ask, enum s3_answer_kind kind,
    struct s3_answer *ret_answer, struct cadre_error *error);

#endif
