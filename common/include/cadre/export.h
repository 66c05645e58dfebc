/* SPDX-License-Identifier: Apache-2.0
 * Variables as a file that other programs read, and back. (tf.saved_model.save and load, as far as
 * they are about values: a graph there is not.)
 *
 * The format is safetensors: 8 bytes, the length of the header, little endian; the header as JSON,
 * {"name": {"dtype", "shape", "data_offsets"}, ...}, padded to a multiple of 8; then the tensors,
 * large element types first and in order of name within each, without gaps. "__metadata__" has
 * "format" ("cadre"), "position" (steps applied) and, of each tensor that is called otherwise than
 * its variable, "variable/<tensor>": "<variable>". A program in another language reads it with the
 * safetensors package; files that others wrote are read here. F64, F32, F16, BF16, I64, I32, I16,
 * I8, U32, U16, U8 and BOOL; not strings. It has no checksums; checkpoints have
 * (cadre/checkpoint.h). */
#ifndef CADRE_EXPORT_H
#define CADRE_EXPORT_H

#include <stdint.h>

#include "cadre/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a tensor of the file is called, and of which variable it has the value. */
typedef struct cadre_signature {
    const char *name;     /* 1 to 127 bytes of printable ASCII, unique in the file */
    const char *variable; /* the name of a variable, or as what an optimizer on servers remembers
                             stands in checkpoints (cadre/served.h); NULL: as `name` */
} cadre_signature;

/* Writes the values of variables after the last step to `path`, which ends with ".safetensors"
 * (INVALID_ARGUMENT otherwise): `count` of them under the names of `signatures`; with 0, all
 * variables under their own names, but those that are combined when read (metrics, counters) and
 * what optimizers on servers remember: these are written when they are named. Of a variable that
 * is combined when read it is the total, of others the first replica's value.
 * A relative path is one of the output folder, as of checkpoints (CADRE_OUTPUT_DIR, by hand the
 * working folder); its folder is there. The file is whole or is not there: a temporary one is made
 * durable and then put in its place, also of one that was there before. Collective: all tasks
 * export the same, the first one writes, and all get the same code. NOT_FOUND: there is no such
 * variable, or folder; ALREADY_EXISTS: two tensors of one name; INVALID_ARGUMENT: strings; what the
 * disk says otherwise. It is no step, and the training may go on after it. In a task that joins
 * later it does nothing. Cross-replica context. (tf.saved_model.save, whose signatures name what a
 * model offers.)
 */
CADRE_API cadre_status cadre_export(
    cadre_strategy *strategy, const char *path, const cadre_signature *signatures, uint32_t count);

/* Creates a variable for each tensor of a safetensors file (`path` ends with ".safetensors") with
 * its type, shape and value: without an aggregation, as cadre_variable_create does with
 * no options, under the name of the variable that was exported, else that of the tensor; in order
 * of name. They are found by cadre_variable_find. Those that are to have options are created by the
 * program instead, after cadre_restore of the same file (cadre/restore.h). Of a checkpoint's file
 * of tensors registered state ("state/<name>") is passed over.
 * Collective: all tasks name the same path, before the first step (FAILED_PRECONDITION after); the
 * first one reads, and all get the same code. NOT_FOUND: no such file; DATA_LOSS names the file,
 * the tensor, and what is wrong with it; ALREADY_EXISTS: a variable of that name is there;
 * INVALID_ARGUMENT: a name that no variable can have. Nothing was created then. In a job that goes
 * on from its own checkpoint, and in a task that joins later, variables are created with what the
 * file says, and have the values of the job; so the file is there, too, also for a task that joins.
 * Cross-replica context. (tf.saved_model.load.) */
CADRE_API cadre_status cadre_import(cadre_strategy *strategy, const char *path);

#ifdef __cplusplus
}
#endif
#endif
