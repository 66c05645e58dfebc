/* SPDX-License-Identifier: Apache-2.0
 * A pipeline of files, without any strategy: the names are sharded, repeated and shuffled; the
 * files are read by turns, and their records parsed by several threads, after the shuffle. */
#include <cadre/cadre.h>
#include <inttypes.h>
#include <stdio.h>

static void write_file(const char *name, int64_t first)
{
    cadre_tfrecord_writer *writer;
    CADRE_CHECK(cadre_tfrecord_writer_create(name, CADRE_COMPRESSION_NONE, &writer));
    for (int64_t i = first; i < first + 10; i++) {
        CADRE_CHECK(cadre_tfrecord_writer_write(writer, &i, sizeof i));
    }
    CADRE_CHECK(cadre_tfrecord_writer_close(writer));
}

/* A record is the bytes of one number. */
static cadre_status parse(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const cadre_string *record = cadre_tensor_const_data(in->tensors[0]);
    if (record->size != sizeof(int64_t)) {
        return cadre_fail(CADRE_DATA_LOSS, "a record has %zu bytes, not 8", record->size);
    }
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_I64, 0, NULL, record->bytes, &ret_out->tensors[0]);
}

int main(int argc, char **argv)
{
    const cadre_interleave_options turns = {.cycle_length = 2, .block_length = 1};
    const cadre_map_options by_threads = {.parallel = 4};
    const char *pattern = "part-?.tfr";
    cadre_iterator *iterator;
    cadre_element element;
    int64_t count = 0, sum = 0;
    CADRE_CHECK(cadre_init(&argc, &argv));
    write_file("part-1.tfr", 0);
    write_file("part-2.tfr", 10);
    write_file("part-3.tfr", 20);
    cadre_dataset *data = cadre_dataset_list_files(&pattern, 1, NULL); /* sorted: no shuffle */
    data = cadre_dataset_shard(data, 2, 0);                            /* 2 workers, the first */
    data = cadre_dataset_repeat(data, 5);
    data = cadre_dataset_shuffle(data, 4, 42, NULL);
    data = cadre_dataset_interleave(data, cadre_open_tfrecord, NULL, &turns);
    data = cadre_dataset_map(data, parse, NULL, &by_threads);
    CADRE_CHECK(cadre_dataset_iterate(data, 0, &iterator));
    cadre_status status;
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        sum += *(const int64_t *)cadre_tensor_const_data(element.tensors[0]);
        count++;
        cadre_element_release(&element);
    }
    CADRE_CHECK(status == CADRE_OUT_OF_RANGE ? CADRE_OK : status); /* the end is no failure */
    printf("%" PRId64 " numbers, their sum is %" PRId64 "\n", count, sum);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
    return 0;
}
