/* SPDX-License-Identifier: Apache-2.0
 * The text beside the tensors: JSON. In a checkpoint it is the manifest; in a state sync the same
 * text is sent before the tensors.
 *
 *     {"format": "cadre-checkpoint", "version": 2, "position": 120, "generation": 3,
 *      "job": 7, "run": "5f2c...",
 *      "restored": false, "place": 2,
 *      "streams": [{"name": "train", "stream": 1, "epochs_begun": 2, "applied": 40, "steps": 80,
 *                   "open": true, "serial": 7, "feed": {...}}],
 *      "strings": {"vocabulary": ["a", "b"]}, "variables": {...},
 *      "hash": "xxh3-chunks-65536", "digest": "8c3f0d5b9a7e6142", "hashes": {"w": "00c4...",
 * "vocabulary": "91b2..."}, "file": {"name": "checkpoint-120.safetensors", "bytes": 1234,
 * "sha256": "..."}, "blocks": [{"offset": 0, "bytes": 8388608, "crc32c": "89abcdef", "sha256":
 * "..."}]}
 *
 * `variables`: their descriptions, for a program that has not created all of them
 * (manifest_variables.h). `digest` and `hashes` (state_hash.h) are those of the state that was
 * copied: loading compares the loaded state with them. `hash` names the method (memory_hash.h):
 * hashes of another method, as by versions before it, are not compared. They are absent where
 * CADRE_VERIFY_STATE is off, and in checkpoints of versions that had none. They, `file` and
 * `blocks` are a checkpoint's only. A number over 2^63 - 1 is written as a string of digits, and
 * the lanes of digests always are. A string that is not UTF-8, or holds a zero byte, is {"hex":
 * "00ff"}. `run` is 128 random bits that all tasks of a job share: only that job deletes the
 * checkpoint. `restored`: no step was applied since the state came from a checkpoint. `place`: the
 * point of the program's loop (enum loop_point), 0 when it is absent. The state of a plain program
 * has {"plain": {"tasks": 2}}, no streams and no variables; its tensors are called "NAME/RANK". */
#ifndef CADRE_RUNTIME_CHECKPOINT_MANIFEST_H
#define CADRE_RUNTIME_CHECKPOINT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/limits.h"

struct cadre_strategy;

struct manifest_block {
    uint64_t offset;
    uint64_t bytes;
    uint32_t crc32c;
    uint8_t sha256[LIMIT_SHA256_BYTES];
};

/* A checkpoint's file of tensors. */
struct manifest_file {
    char name[LIMIT_FILE_NAME_BYTES];
    uint64_t bytes;
    bool has_hash; /* to write; none in a store. Who reads has those of blocks, and not this one */
    uint8_t sha256[LIMIT_SHA256_BYTES];
    struct manifest_block *blocks; /* owned */
    size_t block_count;
};

/* Frees the blocks, and zeroes it. */
void manifest_file_clear(struct manifest_file *file);

/* The strategy's positions and strings as text, malloc'ed, terminated. */
cadre_status manifest_encode(const struct cadre_strategy *strategy, char **ret_text,
    size_t *ret_bytes, struct cadre_error *error);

struct manifest;
/* The same in two parts. First what belongs to this moment, in the program's thread; *ret_manifest
 * is the caller's to free. */
cadre_status manifest_take(const struct cadre_strategy *strategy, struct manifest **ret_manifest,
    struct cadre_error *error);
/* Then the text, in any thread; malloc'ed, terminated. `file` NULL: that of a state sync. */
cadre_status manifest_text(struct manifest *manifest, const struct manifest_file *file,
    char **ret_text, size_t *ret_bytes, struct cadre_error *error);
/* Frees it. Accepts NULL. */
void manifest_free(struct manifest *manifest);

#define MANIFEST_RUN_BYTES 33 /* 32 digits and the terminator */
/* 128 random bits that name a run. UNAVAILABLE: the system gives none. */
cadre_status manifest_run_make(char ret_run[MANIFEST_RUN_BYTES], struct cadre_error *error);

/* Where the state of a plain program stands: it has neither datasets nor variables. */
struct manifest_plain {
    uint64_t position; /* how many states were saved */
    uint64_t generation;
    uint64_t job;
    uint32_t tasks;
    const char *run;
};
/* The manifest of such a state, for manifest_text; *ret_manifest is the caller's to free. */
cadre_status manifest_plain_make(
    const struct manifest_plain *plain, struct manifest **ret_manifest, struct cadre_error *error);

/* Sets the hash of the tensor `name`; of NULL the digest of all. The newest counts. False:
 * no memory. */
bool manifest_note_hash(struct manifest *manifest, const char *name, uint64_t hash);

/* Takes positions and strings over into the strategy, between state_receive and its commit or undo,
 * which is that of the strings too. A task that is warm takes the positions in all epochs, with
 * `reenters`, and the name of the run; any other one keeps its own positions, and takes the
 * consumption of epochs that it is in. INVALID_ARGUMENT names what is malformed or does not fit the
 * program (then nothing was taken over). Text of any origin is checked. */
cadre_status manifest_decode(struct cadre_strategy *strategy, const char *text, size_t bytes,
    uint64_t *ret_position, struct cadre_error *error);

struct manifest_content;
/* The same in two parts. First reading; *ret_content is the caller's to free. `strategy` NULL: no
 * strings are read. */
cadre_status manifest_read(const struct cadre_strategy *strategy, const char *text, size_t bytes,
    struct manifest_content **ret_content, struct cadre_error *error);
/* The position in the text. */
uint64_t manifest_position(const struct manifest_content *content);
/* The name of its run, the content's; "": it has none. */
const char *manifest_run(const struct manifest_content *content);
/* The tasks that saved the state of a plain program; 0: it is a strategy's. */
uint32_t manifest_plain_tasks(const struct manifest_content *content);
/* The file of tensors in the text; the content's. */
const struct manifest_file *manifest_tensors(const struct manifest_content *content);
struct cadre_tensor;
struct cadre_variable;
/* The strings of one variable, of the program or not; *ret_strings is the caller's to release. */
cadre_status manifest_read_strings(const char *text, size_t bytes,
    const struct cadre_variable *variable, struct cadre_tensor **ret_strings,
    struct cadre_error *error);
/* Each variable of strings that the text holds, and how many strings it has. */
cadre_status manifest_each_strings(const char *text, size_t bytes,
    void (*each)(void *user, const char *name, size_t count), void *user,
    struct cadre_error *error);
/* INVALID_ARGUMENT: it is in the middle of an epoch that has another number of steps here, so that
 * samples would be consumed twice or not at all. */
cadre_status manifest_fits(const struct cadre_strategy *strategy,
    const struct manifest_content *content, struct cadre_error *error);
/* Makes iterators that it holds and the program did not make yet, because the program may re-enter
 * them. */
cadre_status manifest_make_iterators(struct cadre_strategy *strategy,
    const struct manifest_content *content, struct cadre_error *error);
/* The hash of what was written under `name`. False: the manifest has none. */
bool manifest_hash_of(const struct manifest_content *content, const char *name, uint64_t *ret_hash);
/* Then taking it over, which cannot fail. `from_file`: it is a checkpoint's, not another task's. */
void manifest_take_over(
    struct cadre_strategy *strategy, struct manifest_content *content, bool from_file);
/* Frees it. Accepts NULL. */
void manifest_content_free(struct manifest_content *content);

/* Whether a text is a manifest of that run and position, without reading all of it. */
bool manifest_is_of(const char *text, size_t bytes, const char *run, uint64_t position);

#endif
