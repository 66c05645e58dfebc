/* SPDX-License-Identifier: Apache-2.0
 * Which task reads what of a job's datasets, as text. */
#include <inttypes.h>
#include <string.h>

#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/table.h"

static const char *render_shards_meaning(const cadre_job_shards *shards)
{
    if (shards->file_count > 0) {
        return "whole files";
    }
    return strcmp(shards->policy, "DATA") == 0 ? "the samples of each step"
                                               : "a pipeline of its own each";
}

static void print_head(const cadre_job_shards *shards, FILE *out)
{
    fputs("dataset ", out);
    text_print(out, shards->dataset, 0);
    fprintf(out, "  %s: %s, by %" PRIu32 " task%s; epoch %" PRIu64 ", step %" PRIu64,
        shards->policy, render_shards_meaning(shards), shards->readers,
        shards->readers == 1 ? "" : "s", shards->epoch, shards->step);
    if (shards->file_count > 0) {
        fprintf(
            out, "; %" PRIu64 " of %" PRIu64 " files read", shards->files_read, shards->file_count);
    }
    fputc('\n', out);
}

static void add_file(struct table *table, const cadre_job_file *file)
{
    table_add(table, COLOUR_NONE, "%s", file->name);
    if (file->is_read) {
        table_add(table, COLOUR_NONE, "-");
    } else {
        table_add(table, COLOUR_NONE, "%" PRIu32, file->rank);
    }
    table_add(table, COLOUR_NONE, "%" PRIu64, file->read);
    if (file->total > 0) {
        table_add(table, COLOUR_NONE, "%" PRIu64, file->total);
    } else {
        table_add(table, COLOUR_NONE, file->is_read ? "0" : "?");
    }
}

static bool print_files(
    const cadre_job_shards *shards, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {
        {"FILE", false}, {"RANK", true}, {"READ", true}, {"SAMPLES", true}};
    struct table table;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < shards->shown; i++) {
        add_file(&table, &shards->files[i]);
    }
    bool good = table_print(&table, text_style, out);
    table_close(&table);
    if (shards->shown < shards->file_count) {
        fprintf(out, "  and %" PRIu64 " more\n", shards->file_count - shards->shown);
    }
    return good;
}

bool render_shards(const cadre_job *job, const struct text_style *text_style, FILE *out)
{
    bool good = true;
    if (job->shards_count == 0) {
        fprintf(out, "job %" PRIu64 " has reported no dataset\n", job->id);
    }
    for (size_t i = 0; i < job->shards_count; i++) {
        if (i > 0) {
            fputc('\n', out);
        }
        print_head(&job->shards[i], out);
        good = print_files(&job->shards[i], text_style, out) && good;
    }
    return good;
}
