/* SPDX-License-Identifier: Apache-2.0
 * DatasetShards: who reads what. */
#include "common/wire/codec.h"

static Cadre__V1__ShardFile **encode_files(
    struct encoder *encoder, const struct shards_report *shards)
{
    size_t count = shards->shown_count;
    Cadre__V1__ShardFile **list = encoder_array(encoder, count, sizeof *list);
    Cadre__V1__ShardFile *files = encoder_array(encoder, count, sizeof *files);
    if (list == NULL || files == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const struct shard_file *from = &shards->shown[i];
        cadre__v1__shard_file__init(&files[i]);
        files[i].name = encoder_text(encoder, from->name);
        files[i].rank = from->rank;
        files[i].read = from->read;
        files[i].total = from->total;
        list[i] = &files[i];
    }
    return list;
}

void encode_shards(
    struct encoder *encoder, Cadre__V1__DatasetShards *wire, const struct shards_report *shards)
{
    cadre__v1__dataset_shards__init(wire);
    wire->name = (char *)shards->name;
    wire->policy = (char *)shards->policy;
    wire->epoch = shards->epoch;
    wire->step = shards->step;
    wire->readers = shards->readers;
    wire->files = shards->files;
    wire->files_read = shards->files_read;
    wire->shown = encode_files(encoder, shards);
    wire->n_shown = wire->shown != NULL ? shards->shown_count : 0;
}

void decode_shards(
    struct decoder *decoder, const Cadre__V1__DatasetShards *wire, struct shards_report *ret_shards)
{
    *ret_shards = (struct shards_report){
        .name = decode_name(decoder, "DatasetShards.name", wire->name),
        .policy = decode_name_or_empty(decoder, "DatasetShards.policy", wire->policy),
        .epoch = wire->epoch,
        .step = wire->step,
        .readers =
            decode_u32(decoder, "DatasetShards.readers", wire->readers, 0, LIMIT_TASKS_PER_JOB),
        .files = wire->files,
        .files_read = wire->files_read,
    };
    if (!decode_count(decoder, "DatasetShards.shown", wire->n_shown, LIMIT_SHARD_FILES)) {
        return;
    }
    struct shard_file *files = decode_array(decoder, wire->n_shown, sizeof *files);
    if (files == NULL) {
        return;
    }
    for (size_t i = 0; i < wire->n_shown; i++) {
        const Cadre__V1__ShardFile *from = wire->shown[i];
        files[i] = (struct shard_file){
            .name = decode_text(decoder, "ShardFile.name", from->name),
            .rank = from->rank,
            .read = from->read,
            .total = from->total,
        };
    }
    ret_shards->shown = files;
    ret_shards->shown_count = wire->n_shown;
}

void encode_shards_list(
    struct encoder *encoder, Cadre__V1__JobInfo *wire, const struct job_info *info)
{
    size_t count = info->shards_count;
    Cadre__V1__DatasetShards **list = encoder_array(encoder, count, sizeof *list);
    Cadre__V1__DatasetShards *shards = encoder_array(encoder, count, sizeof *shards);
    if (list == NULL || shards == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        encode_shards(encoder, &shards[i], &info->shards[i]);
        list[i] = &shards[i];
    }
    wire->shards = list;
    wire->n_shards = count;
}

void decode_shards_list(
    struct decoder *decoder, const Cadre__V1__JobInfo *wire, struct job_info *ret_info)
{
    if (!decode_count(decoder, "JobInfo.shards", wire->n_shards, LIMIT_STREAMS)) {
        return;
    }
    struct shards_report *shards = decode_array(decoder, wire->n_shards, sizeof *shards);
    if (shards == NULL) {
        return;
    }
    decoder->list = "JobInfo.shards";
    for (size_t i = 0; i < wire->n_shards; i++) {
        decoder->entry = i;
        decode_shards(decoder, wire->shards[i], &shards[i]);
    }
    decoder->list = NULL;
    ret_info->shards = shards;
    ret_info->shards_count = wire->n_shards;
}
