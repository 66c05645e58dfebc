/* SPDX-License-Identifier: Apache-2.0
 * The checkpoints of a job that lie in an object store: the coordinator names their manifests, and
 * `cadre get` reads them with the credentials of its caller. */
#ifndef CADRE_CLI_GET_STORED_H
#define CADRE_CLI_GET_STORED_H

#include "cadre/client.h"
#include "common/base/error.h"

struct storage_client;
struct stored_checkpoint;

struct stored_outputs {
    cadre_output_list list; /* of the coordinator and of the store, sorted by path; no `stored` */
    struct storage_client *client;
    struct stored_checkpoint *checkpoints;
    size_t count;
    char **texts; /* paths of the list, which are its own */
    size_t text_count;
    cadre_output *outputs;
};

/* Reads the manifests if `read`; else those of the store are not in the list. What cannot be read
 * is listed without its tensors, and stored_outputs_fault() says why. RESOURCE_EXHAUSTED.
 * stored_outputs_close() follows, on an error as well; `list` stays the caller's until then. */
cadre_status stored_outputs_open(const cadre_output_list *list, bool read,
    struct stored_outputs *ret_stored, struct cadre_error *error);
/* Accepts {0}. */
void stored_outputs_close(struct stored_outputs *stored);

/* Of the first that cannot be read; NULL: all can be. */
const struct cadre_error *stored_outputs_fault(const struct stored_outputs *stored);

/* Whether the output lies in the store. */
bool stored_outputs_has(const struct stored_outputs *stored, const char *path);
/* Writes it to `fd`, checked against its hash; `each` is called now and then. Errors name the
 * object. */
cadre_status stored_outputs_fetch(const struct stored_outputs *stored, const char *path, int fd,
    void (*each)(void *user), void *user, struct cadre_error *error);

#endif
