/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/input/reports.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"

static const char *policy_name(const cadre_distributed_dataset *distributed)
{
    if (distributed->function != NULL) {
        return "FUNCTION";
    }
    switch (distributed_input_policy(distributed->input)) {
    case CADRE_SHARD_FILE:
        return "FILE";
    case CADRE_SHARD_OFF:
        return "OFF";
    case CADRE_SHARD_HINT:
        return "HINT";
    case CADRE_SHARD_AUTO:
    case CADRE_SHARD_DATA:
        break;
    }
    return "DATA";
}

static uint64_t consumed_of(const struct file_share *file)
{
    uint64_t consumed = 0;
    for (size_t i = 0; i < file->consumed_count; i++) {
        CADRE_ASSERT(file->consumed[i].end >= file->consumed[i].first);
        consumed += file->consumed[i].end - file->consumed[i].first;
    }
    return consumed;
}

/* Appends the files that are done, or those that are not. */
static void show_files(const cadre_distributed_dataset *distributed,
    const struct file_shares *shares, bool done, struct shard_file *shown, size_t *count)
{
    for (size_t i = 0; i < shares->file_count && *count < LIMIT_SHARD_FILES; i++) {
        const struct file_share *file = &shares->files[i];
        if (file->done == done) {
            uint64_t consumed = consumed_of(file);
            shown[(*count)++] =
                (struct shard_file){.name = distributed_input_file_name(distributed->input, i),
                    .rank = done ? SHARD_NO_TASK : file->owner,
                    .read = consumed,
                    .total = done ? consumed : 0};
        }
    }
}

void report_shards(cadre_strategy *strategy)
{
    struct shard_file shown[LIMIT_SHARD_FILES];
    for (uint32_t i = 0; i < strategy->input->dataset_count; i++) {
        const cadre_distributed_dataset *distributed = strategy->input->datasets[i];
        struct dataset_shards known;
        if (!distributed_shards(distributed, &known)) {
            continue;
        }
        struct shards_report report = {.name = known.name,
            .policy = policy_name(distributed),
            .epoch = known.epoch,
            .step = known.step,
            .readers = known.workers,
            .shown = shown};
        if (known.files != NULL) {
            report.files = known.files->file_count;
            report.files_read = file_shares_count(known.files).done;
            show_files(distributed, known.files, false, shown, &report.shown_count);
            show_files(distributed, known.files, true, shown, &report.shown_count);
        }
        task_shards(strategy->task, &report);
    }
}
