/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints that lie in an object store: what cadre_client_outputs() of cadre/client.h gives of
 * those of a job, and what a job may go on from. The coordinator has no credentials for the store;
 * who has some reads there the manifest, and beside it the file of tensors that it names. */
#ifndef CADRE_CLIENT_STORED_H
#define CADRE_CLIENT_STORED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One, as its manifest has it. A job that goes on from it (cadre_submit_options.restore_stored)
 * takes these from here: its tasks read it with the credentials of the job, and none of them begins
 * when it is damaged. */
typedef struct cadre_stored_checkpoint {
    const char *path; /* of the manifest: "s3://bucket/key" */
    uint64_t step;    /* that its state has done */
    uint64_t manifest_bytes;
    uint8_t manifest_sha256[32];
} cadre_stored_checkpoint;

/* Those that a job keeps (cadre_submit_options.checkpoint_folder), oldest first. They are no
 * outputs: cadre_client_get_output() has none of them. */
typedef struct cadre_stored_list {
    const cadre_stored_checkpoint *checkpoints;
    size_t count;
} cadre_stored_list;

#ifdef __cplusplus
}
#endif

#endif
