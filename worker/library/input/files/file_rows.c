/* SPDX-License-Identifier: Apache-2.0
 * See file_rows.h. */
#include "worker/library/input/files/file_rows.h"

#include <stdbool.h>
#include <string.h>

#include "worker/library/input/files/block_cache.h"

/* Rows that are looked for in memory before the first is copied, so that it is on its way. */
#define LOOKED_AHEAD 32
#define CACHE_LINE   64
#define LINES_AHEAD  8 /* of a row; what follows them the processor finds by itself */

struct run {
    size_t rows;
    int64_t offset;
    const char *kept;
};

/* The rows from `places` on that follow each other in the file. */
static struct run next_run(
    const struct file_rows *rows, const struct element_position positions[], size_t count)
{
    struct run run = {.rows = 1};
    uint64_t index = positions[0].index;
    bool joined = rows->step_bytes == rows->row_bytes;
    while (joined && run.rows < count && positions[run.rows].index == index + run.rows) {
        run.rows++;
    }
    run.offset = rows->offset + (int64_t)((index - rows->first) * rows->step_bytes);
    return run;
}

static void file_rows_prefetch(const char *kept, size_t bytes)
{
    for (size_t i = 0; i < LINES_AHEAD && i * CACHE_LINE < bytes; i++) {
        __builtin_prefetch(kept + i * CACHE_LINE);
    }
}

/* The runs of an object are fetched at the same time. */
static void ask_for_runs(
    const struct file_rows *rows, const struct element_position positions[], size_t count)
{
    for (size_t done = 0; done < count && rows->row_bytes > 0;) {
        struct run run = next_run(rows, positions + done, count - done);
        input_file_ask(rows->file, run.offset, run.rows * rows->row_bytes);
        done += run.rows;
    }
}

cadre_status file_rows_read(const struct file_rows *rows, const struct element_position positions[],
    size_t count, char *to, struct cadre_error *error)
{
    struct run runs[LOOKED_AHEAD];
    if (rows->file->object != NULL) {
        ask_for_runs(rows, positions, count);
    }
    for (size_t done = 0; done < count && rows->row_bytes > 0;) {
        size_t found = 0;
        for (; found < LOOKED_AHEAD && done < count; found++) {
            struct run run = next_run(rows, positions + done, count - done);
            size_t bytes = run.rows * rows->row_bytes;
            if (bytes < BLOCK_CACHE_READ_BYTES) {
                run.kept = block_cache_find(rows->file->blocks, rows->file, run.offset, bytes);
            }
            if (run.kept != NULL) {
                file_rows_prefetch(run.kept, bytes);
            }
            runs[found] = run;
            done += run.rows;
        }
        for (size_t i = 0; i < found; i++) {
            size_t bytes = runs[i].rows * rows->row_bytes;
            if (runs[i].kept != NULL) {
                memcpy(to, runs[i].kept, bytes);
            } else {
                CADRE_TRY(input_file_read(rows->file, runs[i].offset, to, bytes, error));
            }
            to += bytes;
        }
    }
    return CADRE_OK;
}
