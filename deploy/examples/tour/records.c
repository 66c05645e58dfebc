/* SPDX-License-Identifier: Apache-2.0
 * A dataset of a list of TFRecord files. Files and samples are shared out by Cadre: the loop does
 * not know how many tasks there are. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = {"1.tfr", "2.tfr", "3.tfr", "4.tfr"};

static void write_file(const char *name, size_t records)
{
    cadre_tfrecord_writer *writer;
    CADRE_CHECK(cadre_tfrecord_writer_create(name, CADRE_COMPRESSION_NONE, &writer));
    for (size_t i = 0; i < records; i++) {
        CADRE_CHECK(cadre_tfrecord_writer_write(writer, "record", 6));
    }
    CADRE_CHECK(cadre_tfrecord_writer_close(writer));
}

static cadre_status count_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    return cadre_tensor_from_i64(cadre_tensor_rows(inputs[0]), &outputs[0]);
}

int main(int argc, char **argv)
{
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch, *counts;
    int64_t records = 0;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    for (size_t i = 0; i < 4; i++) {
        write_file(names[i], 5 + i);
    }
    CADRE_CHECK(cadre_barrier()); /* all tasks have written them before one reads */
    cadre_dataset *batches = cadre_dataset_batch(cadre_dataset_tfrecord(names, 4, NULL), 4, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, batches, NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            cadre_tensor *count;
            CADRE_CHECK(cadre_run(strategy, count_rows, NULL, batch, 1, &counts));
            CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, counts, CADRE_AXIS_NONE, &count));
            records += *(const int64_t *)cadre_tensor_const_data(count);
            cadre_tensor_release(count);
        }
    }
    printf("%" PRId64 " records\n", records);
    return cadre_finish(strategy);
}
