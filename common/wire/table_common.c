/* SPDX-License-Identifier: Apache-2.0
 * The tables of messages that several families use. */
#include "common/wire/rows.h"

ROWS(TaskRef) = {
    JOB(TaskRef, job, job.n),
    SLOT(TaskRef, slot),
    NUMBER(TaskRef, incarnation, 1, UINT64_MAX),
};
TABLE(TaskRef, task_ref);

static bool term_is_given(const void *model)
{
    const struct term *term = model;
    return term->cluster != 0;
}

ROWS(Term) = {
    NUMBER(Term, cluster, 1, UINT64_MAX),
    NUMBER(Term, start, 1, INT64_MAX),
    COPY(Term, nonce),
};
TABLE_WITH(Term, term, .is_given = term_is_given);

ROWS(Generation) = {
    NUMBER(Generation, number, 1, UINT64_MAX),
    COPY(Generation, nonce),
};
TABLE(Generation, generation);

ROWS(Cursor) = {
    STREAM(Cursor, stream),
    COPY(Cursor, epoch),
    NUMBER_UP_TO(Cursor, first, begin),
    POSITION(Cursor, begin),
    POSITION(Cursor, steps),
    BOOL(Cursor, nested),
};
TABLE(Cursor, cursor);

/* ---- Consumption ---- */

WIRE_MODEL(ConsumptionExpected, struct consumption);

ROWS(ConsumptionExpected) = {
    COPY_AS(ConsumptionExpected, low, expected[0]),
    COPY_AS(ConsumptionExpected, high, expected[1]),
};
static TABLE(ConsumptionExpected, consumption_expected);

static void consumption_after_fill(void *wire, const void *model)
{
    Cadre__V1__Consumption *to = wire;
    const struct consumption *consumption = model;
    if (!consumption->provable) {
        to->files = CADRE__V1__CONSUMPTION_FILES__CONSUMED_FILES_NONE;
    }
}

static void consumption_after_take(struct decoder *decoder, const void *wire, void *model)
{
    const Cadre__V1__Consumption *from = wire;
    struct consumption *consumption = model;
    if (consumption->provable) {
        consumption->files = (enum consumed_files)decode_i32(
            decoder, "files", (int32_t)from->files, CONSUMED_FILES_NONE, CONSUMED_FILES_ALL);
    } else {
        consumption->files = CONSUMED_FILES_NONE;
    }
}

ROWS(Consumption) = {
    POSITION(Consumption, steps), POSITION(Consumption, samples),
    COPY_AS(Consumption, consumed_low, consumed[0]),
    COPY_AS(Consumption, consumed_high, consumed[1]),
    INLINE_IF(Consumption, expected, ConsumptionExpected, provable),
    COPY(Consumption, files), /* when it is provable */
};
TABLE_WITH(Consumption, consumption, .after_fill = consumption_after_fill,
    .after_take = consumption_after_take);

static bool verified_is_given(const void *model)
{
    const struct verified *verified = model;
    return verified->digest != 0;
}

ROWS(Verified) = {
    POSITION(Verified, position),
    NUMBER(Verified, digest, 1, UINT64_MAX),
};
TABLE_WITH(Verified, verified, .is_given = verified_is_given);

/* ---- where the bytes of a log came from ---- */

static bool is_mark_in(const struct log_mark *mark, uint64_t least, uint64_t end)
{
    return mark->offset >= least && mark->offset < end;
}

void decode_log_marks(struct decoder *decoder, const struct log_mark *marks, size_t count,
    uint64_t offset, size_t size_bytes)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t least = i == 0 ? offset : marks[i - 1].offset + 1;
        if (!is_mark_in(&marks[i], least, i == 0 ? offset + 1 : offset + size_bytes)) {
            decoder_fail(decoder, CADRE_INVALID_ARGUMENT, "marks",
                "are not of the data, from its first byte on, by rising offsets");
            return;
        }
    }
}

ROWS(LogMark) = {
    SPAN(LogMark, offset),
    SIGNED(LogMark, stream, LOG_STREAM_ANY, LOG_STREAM_STDERR),
    NUMBER(LogMark, received_us, 0, INT64_MAX / 4),
};
TABLE(LogMark, log_mark);

/* ---- how a task ended, where it continues ---- */

ROWS(TaskExit) = {
    SIGNED(TaskExit, code, 0, 255),
    SIGNED(TaskExit, signal, 0, 64),
    TEXT_ARRAY_FOR_PEOPLE(TaskExit, text),
};
TABLE(TaskExit, task_exit);

ROWS(Refused) = {
    SIGNED(Refused, code, CADRE_CANCELLED, CADRE_UNAUTHENTICATED),
    TEXT_FOR_PEOPLE(Refused, text, decode_text),
};
TABLE(Refused, refused);

WIRE_MODEL(Metric, struct metric);

ROWS(Metric) = {
    TEXT(Metric, name, decode_name),
    COPY(Metric, value),
};
static TABLE(Metric, metric);

ROWS(Progress) = {
    TEXT(Progress, stream, decode_name_or_empty),
    COPY(Progress, epoch),
    COPY(Progress, epochs),
    COPY(Progress, step),
    COPY(Progress, steps),
    COPY(Progress, samples_per_s),
    COPY(Progress, left_s),
    MESSAGES(Progress, metrics, Metric, metrics, metric_count, LIMIT_METRICS),
    MESSAGE_OR_NONE(Progress, fetch, TaskFetch),
};
TABLE(Progress, progress);

/* ---- what a task lacks ---- */

static bool fetch_is_given(const void *model)
{
    const struct task_fetch *fetch = model;
    return fetch->kind != FETCH_NONE;
}

/* Of a kind that this version has no name for the bytes are shown all the same. */
ROWS(TaskFetch) = {
    SIGNED(TaskFetch, kind, FETCH_FILES, INT32_MAX),
    NUMBER_UP_TO(TaskFetch, done_bytes, whole_bytes),
    SPAN(TaskFetch, whole_bytes),
    SPAN(TaskFetch, elapsed_us),
};
TABLE_WITH(TaskFetch, task_fetch, .is_given = fetch_is_given);

/* ---- what a task or a host uses ---- */

static bool usage_is_given(const void *model)
{
    return resource_usage_any(model);
}

ROWS(ResourceUsage) = {
    NUMBER_IF(ResourceUsage, cpu_thousandths, RESOURCE_USAGE___CPU_THOUSANDTHS_CPU_THOUSANDTHS,
        has_cpu, 0, LIMIT_CPU_MAX),
    NUMBER_IF(ResourceUsage, memory_bytes, RESOURCE_USAGE___MEMORY_BYTES_MEMORY_BYTES, has_memory,
        0, INT64_MAX),
    NUMBER_IF(ResourceUsage, memory_peak_bytes,
        RESOURCE_USAGE___MEMORY_PEAK_BYTES_MEMORY_PEAK_BYTES, has_memory_peak, 0, INT64_MAX),
    NUMBER_IF(
        ResourceUsage, gpu_percent, RESOURCE_USAGE___GPU_PERCENT_GPU_PERCENT, has_gpu, 0, 100),
    NUMBER_IF(ResourceUsage, gpu_memory_bytes, RESOURCE_USAGE___GPU_MEMORY_BYTES_GPU_MEMORY_BYTES,
        has_gpu_memory, 0, INT64_MAX),
};
TABLE_WITH(ResourceUsage, resource_usage, .is_given = usage_is_given);

/* ---- which task reads which file ---- */

WIRE_MODEL(ShardFile, struct shard_file);

ROWS(ShardFile) = {
    TEXT_FOR_PEOPLE(ShardFile, name, decode_text),
    COPY(ShardFile, rank),
    COPY(ShardFile, read),
    COPY(ShardFile, total),
};
static TABLE(ShardFile, shard_file);

ROWS(DatasetShards) = {
    TEXT(DatasetShards, name, decode_name),
    TEXT(DatasetShards, policy, decode_name_or_empty),
    COPY(DatasetShards, epoch),
    COPY(DatasetShards, step),
    NUMBER(DatasetShards, readers, 0, LIMIT_TASKS_PER_JOB),
    COPY(DatasetShards, files),
    COPY(DatasetShards, files_read),
    MESSAGES(DatasetShards, shown, ShardFile, shown, shown_count, LIMIT_SHARD_FILES),
};
TABLE(DatasetShards, dataset_shards);

/* ---- the GPUs of a host ---- */

WIRE_MODEL(Gpu, struct gpu);

ROWS(Gpu) = {
    TEXT(Gpu, name, decode_name),
    TEXT(Gpu, uuid, decode_name_or_empty),
    TEXT(Gpu, bus, decode_name_or_empty),
    COPY(Gpu, memory_bytes),
    COPY(Gpu, compute_major),
    COPY(Gpu, compute_minor),
    TEXT_FOR_PEOPLE(Gpu, unused, decode_text),
};
static TABLE(Gpu, gpu);

/* A host without GPUs and without a reason is not sent. */
static bool gpus_are_given(const void *model)
{
    const struct gpus *gpus = model;
    const char *texts[] = {gpus->driver, gpus->runtime, gpus->reason};
    bool text = false;
    for (size_t i = 0; i < CADRE_COUNT_OF(texts); i++) {
        text = text || (texts[i] != NULL && texts[i][0] != '\0');
    }
    return gpus->count > 0 || gpus->omitted > 0 || gpus->usable > 0 || gpus->nccl > 0 || text;
}

/* The sum must be the same when the receiver adds them up. */
static void gpus_after_take(struct decoder *decoder, const void *wire, void *model)
{
    (void)wire;
    const struct gpus *gpus = model;
    uint32_t usable = 0;
    for (size_t i = 0; i < gpus->count; i++) {
        usable += gpus->devices[i].unused[0] == '\0' ? 1U : 0U;
    }
    decode_number(
        decoder, "omitted", gpus->omitted, 0, LIMIT_GPUS_PER_WORKER - (uint32_t)gpus->count);
    decode_number(decoder, "usable", gpus->usable, usable, usable + gpus->omitted);
}

ROWS(Gpus) = {
    MESSAGES(Gpus, devices, Gpu, devices, count, LIMIT_GPUS_PER_WORKER),
    COPY(Gpus, omitted), /* at most what the devices leave room for */
    COPY(Gpus, usable),  /* the devices that are, and of those that are omitted */
    TEXT_FOR_PEOPLE(Gpus, driver, decode_name_or_empty),
    TEXT_FOR_PEOPLE(Gpus, runtime, decode_name_or_empty),
    COPY(Gpus, nccl),
    TEXT_FOR_PEOPLE(Gpus, reason, decode_text),
};
TABLE_WITH(Gpus, gpus, .is_given = gpus_are_given, .after_take = gpus_after_take);
