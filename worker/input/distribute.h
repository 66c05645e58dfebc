/* SPDX-License-Identifier: Apache-2.0
 * Distributed input: one global batch per step, cut into one piece per replica. What (epoch, step)
 * holds is a function of the dataset, its name and the layout; never of what was read before, so a
 * step can be read again by another roster.
 *
 * A step is one element (global batch) of the dataset. With n = workers * replicas:
 *  - n = 1: the batch as it is.
 *  - DATA (and AUTO, as none of today's sources has files to share out): the batch of b rows is cut
 * into n pieces of ceil(b / n) rows, late ones short or empty; replica r of worker w gets piece w +
 * r * workers. Where the chain is indexable a worker reads its own rows only.
 *  - OFF: each worker reads the whole pipeline and cuts it for itself; no claim across workers.
 * Every replica gets tensors of the right type in every step that exists, with 0 rows where it has
 * no part. */
#ifndef CADRE_WORKER_INPUT_DISTRIBUTE_H
#define CADRE_WORKER_INPUT_DISTRIBUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "common/base/error.h"
#include "common/pure/digest.h"

#define DISTRIBUTED_WORKERS_MAX  65536
#define DISTRIBUTED_REPLICAS_MAX 1024 /* of one worker */

struct distributed_layout {
    uint32_t workers;      /* at least 1 */
    uint32_t worker_index; /* below workers */
    uint32_t replicas;     /* of each worker; at least 1 */
    cadre_shard_policy policy;
    const char *name; /* of the distributed dataset: keys the digests; borrowed during the call */
    bool proves;      /* each batch also says what the whole step should hold */
};

/* One step's input of one worker. */
struct distributed_batch {
    uint64_t epoch;
    uint64_t step;
    uint64_t global_rows;   /* of the whole step, all workers; 1 for an element of scalars */
    uint64_t samples;       /* in `elements`, as their source counts them */
    struct digest fed;      /* of their ids */
    bool provable;          /* layout.proves, and the chain can tell without reading: */
    struct digest expected; /* of all samples of the step, all workers */
    uint32_t replicas;
    cadre_element *elements; /* [replicas] */
};

/* Releases what the batch holds and zeroes it. A zeroed batch is allowed. */
void distributed_batch_clear(struct distributed_batch *batch);

struct distributed_input;

/* Opens `data` for one worker of a layout; opening again for another layout is cheap and shares the
 * dataset. Takes a reference of its own. Fails with the dataset's own error; INVALID_ARGUMENT for a
 * bad layout and, with n > 1, for scalar components (batch first); NOT_FOUND for FILE where there
 * are no files; UNIMPLEMENTED for FILE on files and HINT. */
cadre_status distributed_input_open(cadre_dataset *data, const struct distributed_layout *layout,
    struct distributed_input **ret_input, struct cadre_error *error);

/* NULL is allowed. No read may be under way. */
void distributed_input_close(struct distributed_input *input);

/* The types and shapes one replica gets; the first dimension is unknown unless every piece has the
 * same. */
const cadre_element_spec *distributed_input_spec(const struct distributed_input *input);

/* Steps of epoch `epoch`: a number, CADRE_CARDINALITY_UNKNOWN (-1; only reading tells) or
 * CADRE_CARDINALITY_INFINITE (-2). Any thread, also during a read. */
int64_t distributed_input_steps(struct distributed_input *input, uint64_t epoch);

/* Whether the workers share each step's samples out, so that each goes to one replica; else every
 * worker reads a pipeline of its own. */
bool distributed_input_shares(const struct distributed_input *input);

/* Samples of the source: its ids are 0 to one less. 0: not known. */
uint64_t distributed_input_source_samples(const struct distributed_input *input);

/* The depth asked for with cadre_dataset_prefetch, 0 if none. */
uint32_t distributed_input_prefetch_depth(const struct distributed_input *input);

/* Reads step `step` of epoch `epoch`, in any order for indexable chains; others are read on from
 * where they stand, or again from the start of the epoch when asked for an earlier step.
 * OUT_OF_RANGE when the step does not exist. On success the batch is the caller's to clear; on
 * error it is zeroed. One thread at a time per input. */
cadre_status distributed_input_read(struct distributed_input *input, uint64_t epoch, uint64_t step,
    struct distributed_batch *ret_batch, struct cadre_error *error);

/* The digest of all samples of a step, over all workers, found without reading them.
 * FAILED_PRECONDITION for a chain that is not indexable unless it is the step read last;
 * UNIMPLEMENTED for OFF with n > 1, which makes no claim. Any thread, also during a read, where the
 * chain is indexable; else the thread that reads.
 */
cadre_status distributed_input_expected_digest(struct distributed_input *input, uint64_t epoch,
    uint64_t step, struct digest *ret_digest, struct cadre_error *error);

#endif
