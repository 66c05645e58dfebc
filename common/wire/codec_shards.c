/* SPDX-License-Identifier: Apache-2.0
 * DatasetShards: who reads what. */
#include "common/wire/codec.h"

static Cadre__V1__ShardFile **fill_files(struct packer *packer, const struct shards_report *shards)
{
    size_t count = shards->shown_count;
    Cadre__V1__ShardFile **list = packer_array(packer, count, sizeof *list);
    Cadre__V1__ShardFile *files = packer_array(packer, count, sizeof *files);
    if (list == NULL || files == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        const struct shard_file *from = &shards->shown[i];
        cadre__v1__shard_file__init(&files[i]);
        files[i].name = packer_text(packer, from->name);
        files[i].rank = from->rank;
        files[i].read = from->read;
        files[i].total = from->total;
        list[i] = &files[i];
    }
    return list;
}

void fill_shards(
    struct packer *packer, Cadre__V1__DatasetShards *wire, const struct shards_report *shards)
{
    cadre__v1__dataset_shards__init(wire);
    wire->name = (char *)shards->name;
    wire->policy = (char *)shards->policy;
    wire->epoch = shards->epoch;
    wire->step = shards->step;
    wire->readers = shards->readers;
    wire->files = shards->files;
    wire->files_read = shards->files_read;
    wire->shown = fill_files(packer, shards);
    wire->n_shown = wire->shown != NULL ? shards->shown_count : 0;
}

void take_shards(
    struct taker *taker, const Cadre__V1__DatasetShards *wire, struct shards_report *ret_shards)
{
    *ret_shards = (struct shards_report){
        .name = take_name(taker, "DatasetShards.name", wire->name),
        .policy = take_name_or_empty(taker, "DatasetShards.policy", wire->policy),
        .epoch = wire->epoch,
        .step = wire->step,
        .readers = take_u32(taker, "DatasetShards.readers", wire->readers, 0, LIMIT_TASKS_PER_JOB),
        .files = wire->files,
        .files_read = wire->files_read,
    };
    if (!take_count(taker, "DatasetShards.shown", wire->n_shown, LIMIT_SHARD_FILES)) {
        return;
    }
    struct shard_file *files = take_array(taker, wire->n_shown, sizeof *files);
    if (files == NULL) {
        return;
    }
    for (size_t i = 0; i < wire->n_shown; i++) {
        const Cadre__V1__ShardFile *from = wire->shown[i];
        files[i] = (struct shard_file){
            .name = take_text(taker, "ShardFile.name", from->name),
            .rank = from->rank,
            .read = from->read,
            .total = from->total,
        };
    }
    ret_shards->shown = files;
    ret_shards->shown_count = wire->n_shown;
}

void fill_shards_list(struct packer *packer, Cadre__V1__JobInfo *wire, const struct job_info *info)
{
    size_t count = info->shards_count;
    Cadre__V1__DatasetShards **list = packer_array(packer, count, sizeof *list);
    Cadre__V1__DatasetShards *shards = packer_array(packer, count, sizeof *shards);
    if (list == NULL || shards == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        fill_shards(packer, &shards[i], &info->shards[i]);
        list[i] = &shards[i];
    }
    wire->shards = list;
    wire->n_shards = count;
}

void take_shards_list(
    struct taker *taker, const Cadre__V1__JobInfo *wire, struct job_info *ret_info)
{
    if (!take_count(taker, "JobInfo.shards", wire->n_shards, LIMIT_STREAMS)) {
        return;
    }
    struct shards_report *shards = take_array(taker, wire->n_shards, sizeof *shards);
    if (shards == NULL) {
        return;
    }
    taker->list = "JobInfo.shards";
    for (size_t i = 0; i < wire->n_shards; i++) {
        taker->entry = i;
        take_shards(taker, wire->shards[i], &shards[i]);
    }
    taker->list = NULL;
    ret_info->shards = shards;
    ret_info->shards_count = wire->n_shards;
}
