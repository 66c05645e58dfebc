/* SPDX-License-Identifier: Apache-2.0
 * Makes TFRecord files of the digits: records of tf.train.Example with the features "image", 64
 * floats from 0 to 16, and "label", one integer. TensorFlow reads them as well.
 *
 *     ./records-make --files 4 --out records
 *
 * Record i of a set stands before record i + 1, in the same file or in an earlier one. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cadre/cadre.h>

#define PIXELS       64
#define RECORD_BYTES (PIXELS + 1) /* of the file that is read: the pixels and the label */
#define PATH_BYTES   4096
#define FILES_MAX    1000

struct making {
    const char *data; /* folder of digits-train.bin and digits-test.bin */
    const char *out;  /* folder of the record files, which is there */
    int64_t files;    /* of each set */
    cadre_compression compression;
};

/* The bytes of an example, as a CADRE_STRING scalar. */
static cadre_status make_example(const uint8_t *record, cadre_tensor **ret_example)
{
    static const char *const names[2] = {"image", "label"};
    const int64_t dims[1] = {PIXELS};
    CADRE_RELEASE_AT_EXIT(tensor) image = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) label = NULL;
    float pixels[PIXELS];
    for (int p = 0; p < PIXELS; p++) {
        pixels[p] = (float)record[p];
    }
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, pixels, &image));
    CADRE_TRY(cadre_tensor_from_i64(record[PIXELS], &label));
    cadre_tensor *const tensors[2] = {image, label};
    return cadre_example_serialize(names, tensors, 2, ret_example);
}

/* Writes the next `count` records. */
static cadre_status write_records(
    cadre_iterator *images, int64_t count, cadre_tfrecord_writer *writer)
{
    for (int64_t i = 0; i < count; i++) {
        cadre_element element;
        cadre_tensor *example = NULL;
        CADRE_TRY(cadre_iterator_next(images, &element));
        cadre_status status = make_example(cadre_tensor_const_data(element.tensors[0]), &example);
        cadre_element_release(&element);
        CADRE_TRY(status);
        const cadre_string *bytes = cadre_tensor_const_data(example);
        status = cadre_tfrecord_writer_write(writer, bytes->bytes, bytes->size);
        cadre_tensor_release(example);
        CADRE_TRY(status);
    }
    return CADRE_OK;
}

/* A file appears when it is whole: no reader gets half of it. */
static cadre_status write_file(
    const struct making *making, const char *path, cadre_iterator *images, int64_t count)
{
    cadre_tfrecord_writer *writer;
    CADRE_TRY(cadre_tfrecord_writer_create(path, making->compression, &writer));
    cadre_status status = write_records(images, count, writer);
    if (status != CADRE_OK) {
        cadre_tfrecord_writer_release(writer);
        return status;
    }
    return cadre_tfrecord_writer_close(writer);
}

static cadre_status write_set(const struct making *making, const char *set)
{
    char path[PATH_BYTES];
    const char *paths[1] = {path};
    snprintf(path, sizeof path, "%s/digits-%s.bin", making->data, set);
    cadre_dataset *data = cadre_dataset_fixed_length(paths, 1, RECORD_BYTES, NULL);
    cadre_iterator *images = NULL;
    cadre_status status = cadre_dataset_iterate(data, 0, &images);
    int64_t records = cadre_dataset_cardinality(data);
    const char *end = making->compression == CADRE_COMPRESSION_GZIP ? ".gz" : "";
    for (int64_t i = 0; status == CADRE_OK && i < making->files; i++) {
        int64_t first = records * i / making->files;
        snprintf(path, sizeof path, "%s/digits-%s-%05lld-of-%05lld.tfrecord%s", making->out, set,
            (long long)i, (long long)making->files, end);
        status = write_file(making, path, images, records * (i + 1) / making->files - first);
    }
    if (status == CADRE_OK) {
        printf(
            "%s: %lld records in %lld files\n", set, (long long)records, (long long)making->files);
    }
    cadre_iterator_release(images);
    cadre_dataset_release(data);
    return status;
}

static bool read_files(int64_t *ret_files)
{
    char *end;
    *ret_files = strtoll(optarg, &end, 10);
    if (end == optarg || *end != '\0' || *ret_files < 1 || *ret_files > FILES_MAX) {
        fprintf(stderr, "records-make: --files is '%s', not 1 to %d\n", optarg, FILES_MAX);
        return false;
    }
    return true;
}

static bool read_options(int argc, char **argv, struct making *making)
{
    static const struct option options[] = {
        {"data", required_argument, NULL, 'd'},
        {"out", required_argument, NULL, 'o'},
        {"files", required_argument, NULL, 'f'},
        {"gzip", no_argument, NULL, 'z'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd') {
            making->data = optarg;
        } else if (option == 'o') {
            making->out = optarg;
        } else if (option == 'z') {
            making->compression = CADRE_COMPRESSION_GZIP;
        } else if (option != 'f' || !read_files(&making->files)) {
            fputs("records-make: [--data FOLDER of digits-*.bin (.)] [--out FOLDER (.)] "
                  "[--files N of each set (4)] [--gzip]\n",
                stderr);
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "records-make: '%s' is not an option; see --help\n", argv[optind]);
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct making making = {.data = ".", .out = ".", .files = 4};
    if (!read_options(argc, argv, &making)) {
        return 2;
    }
    CADRE_CHECK(write_set(&making, "train"));
    CADRE_CHECK(write_set(&making, "test"));
    return 0;
}
