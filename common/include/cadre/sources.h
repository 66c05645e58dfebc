/* SPDX-License-Identifier: Apache-2.0
 * Sources of datasets: memory, files, the program's own functions.
 *
 * Building one copies its arguments and looks at files as little as it can; records are read when
 * they are requested. A file that is missing, cut short or damaged is an error that names the file
 * and the offset; it comes out where the dataset is read. Samples have numbers, in the order in
 * which the source holds them. */
#ifndef CADRE_SOURCES_H
#define CADRE_SOURCES_H

#include "cadre/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- memory. Indexable. --- */

/* Scalars of CADRE_I64: start, start + step, ... below `stop` (above it for a negative step). step
 * 0 is an error. (tf.data.Dataset.range.) */
CADRE_API cadre_dataset *cadre_dataset_range(int64_t start, int64_t stop, int64_t step);

/* One element of the `count` tensors as they are. Takes references of its own; see tensor_slices
 * about writing to them. With cadre_dataset_repeat it is an endless constant.
 * (tf.data.Dataset.from_tensors.) */
CADRE_API cadre_dataset *cadre_dataset_tensors(cadre_tensor *const tensors[], size_t count);

/* Element i holds row i of each of the `count` tensors, which agree in their first dimension. Takes
 * references of its own. The elements share memory with the tensors: do not write to either while
 * the dataset lives. (tf.data.Dataset.from_tensor_slices.) */
CADRE_API cadre_dataset *cadre_dataset_tensor_slices(cadre_tensor *const tensors[], size_t count);

/* --- the program's own. Read in order; not indexable. --- */

/* Elements that functions of the program make, one after the other. */
typedef struct cadre_generator {
    /* What the elements look like, checked on each; dims may be CADRE_DIMENSION_ANY. Copied. */
    const cadre_element_spec *output;
    /* Starts a pass over epoch `epoch`; *ret_pass is handed to `next` and `end`. May be NULL: no
     * pass, and `next` gets NULL. */
    cadre_status (*begin)(uint64_t epoch, void **ret_pass, void *user);
    /* The next element of the pass; OUT_OF_RANGE when there are no more. Another failure is that of
     * the dataset; say why with cadre_fail. One thread at a time per pass. */
    cadre_status (*next)(void *pass, cadre_element *ret_out, void *user);
    /* Ends a pass, also in its middle. May be NULL. */
    void (*end)(void *pass, void *user);
    /* Elements of a pass, CADRE_CARDINALITY_INFINITE, or 0: not known. */
    int64_t cardinality;
    void *user; /* outlives the dataset */
} cadre_generator;

/* The elements that the generator makes. Each iteration is a pass, and several may be open at a
 * time; Cadre's threads make the calls, not always the same one for a pass. Going on in the middle
 * of an epoch generates its beginning again. All workers of a job must generate the same elements
 * in the same order (make randomness a function of the epoch), unless each has a pipeline of its
 * own. (tf.data.Dataset.from_generator.) */
CADRE_API cadre_dataset *cadre_dataset_generator(const cadre_generator *generator);

/* --- files and objects ---
 *
 * Wherever a path stands it may name an object of a store: "s3://BUCKET/KEY", of Amazon S3 or of
 * what has its protocol, or "https://HOST/PATH". Settings and credentials come from the environment
 * as Amazon's own tools read them (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_PROFILE,
 * AWS_ACCESS_KEY_ID, ...).
 *
 * Samples, order, positions and errors are those of files. Objects are read in ranges over several
 * connections, ahead of the program. What was read stays in memory, for all objects of the process
 * within CADRE_OBJECT_MEMORY_MIB mebibytes (8 to 1048576; default: a sixteenth of the machine's
 * memory, 1 GiB at most). It stays on the disk, too, where CADRE_CACHE_FOLDER is set: in that
 * folder, for the next epoch, all tasks of the host and the next job, within CADRE_CACHE_MIB
 * mebibytes (64 or more; default 16384). In both what was used longest ago makes room. An object
 * that is replaced while a dataset reads it is DATA_LOSS. UNAVAILABLE: the store did not answer
 * usefully for a minute; PERMISSION_DENIED names what is not permitted.
 *
 * With CADRE_OBJECT_NEIGHBOURS=on in all tasks of a job they read each byte from the store once,
 * all together, as far as their memories and disks hold the data: each part of an object has one
 * task that reads it there, and the others get it from that task, over the network that tensors
 * take. Samples, order and errors are the same. For a link to the store that is slow beside that
 * network.
 *
 * Tasks that share a dataset by files (CADRE_SHARD_FILE) share out the `paths` of one source as
 * they do the names that cadre_dataset_interleave reads: task i of W reads the paths i, i + W, ...,
 * one after the other. */

/* How files are compressed; each as a whole. */
typedef enum cadre_compression {
    CADRE_COMPRESSION_NONE = 0,
    CADRE_COMPRESSION_GZIP,
    CADRE_COMPRESSION_ZLIB
} cadre_compression;

/* The order of cadre_dataset_list_files. Zeroed: sorted by name. */
typedef struct cadre_list_files_options {
    bool shuffle;  /* another order each epoch; false: sorted by name */
    uint64_t seed; /* of the shuffle: the same on all workers */
} cadre_list_files_options;

/* Scalars of CADRE_STRING: the paths of the files that match the shell patterns, each once, sorted,
 * as they are when the dataset is built. Folders are left out, and NAME.cadre-index, which Cadre
 * makes itself. "s3://BUCKET/train/shard-*" lists the objects that begin as the pattern does before
 * its first wildcard; the bucket has none. NOT_FOUND names a pattern that nothing matches.
 * `options` may be NULL. Indexable. (tf.data.Dataset.list_files.) */
CADRE_API cadre_dataset *cadre_dataset_list_files(
    const char *const patterns[], size_t pattern_count, const cadre_list_files_options *options);

/* How TFRecord files are read. Zeroed: the defaults. */
typedef struct cadre_tfrecord_options {
    cadre_compression compression;
    /* Where the index of the records' places is kept, once made: NULL beside each file or object,
     * as NAME.cadre-index (in memory alone where that folder cannot be written). */
    const char *index_folder;
    bool skip_checksums;  /* believe the file */
    size_t buffer_bytes;  /* read at a time, each iterator; 0: 1 MiB */
    int64_t record_bytes; /* the longest record that is believed, DATA_LOSS beyond; 0: 1 GiB */
    int32_t parallel;     /* threads that read a batch of large records (1 MiB of them or more) by
                             place; 0 and 1: one; or CADRE_PARALLEL_AUTO. The same at any number. */
} cadre_tfrecord_options;

/* Records of TFRecord files, file after file, each as a scalar of CADRE_STRING: any bytes. Both
 * masked CRC-32C of each record are checked. DATA_LOSS: a checksum is wrong or a file ends inside a
 * record. Indexable where not compressed: the places of the records are found once, when first
 * needed (a shuffle of all, sharing out by samples), and kept in index files; in-order reading
 * needs none. Read by place, short records come from mapped files; the first mapping installs a
 * handler of SIGBUS for the process, so that a file that is cut short meanwhile is DATA_LOSS here.
 * It passes on what is not Cadre's; a handler that the program installs later must do so too.
 * `options` may be NULL. (tf.data.TFRecordDataset; the format:
 * https://www.tensorflow.org/tutorials/load_data/tfrecord.) */
CADRE_API cadre_dataset *cadre_dataset_tfrecord(
    const char *const paths[], size_t path_count, const cadre_tfrecord_options *options);

/* How files of text are read. Zeroed: the defaults. */
typedef struct cadre_text_options {
    cadre_compression compression;
    int64_t line_bytes; /* the longest line that is taken; 0: 64 MiB. RESOURCE_EXHAUSTED beyond. */
} cadre_text_options;

/* Lines of text files, without their "\n" or "\r\n", each as a scalar of CADRE_STRING. The last
 * one need not be ended. Not indexable. `options` may be NULL. (tf.data.TextLineDataset.) */
CADRE_API cadre_dataset *cadre_dataset_text_lines(
    const char *const paths[], size_t path_count, const cadre_text_options *options);

/* Where records lie in their files, and what they are of. Zeroed: the defaults. */
typedef struct cadre_fixed_length_options {
    int64_t header_bytes; /* of each file, skipped at its beginning */
    int64_t footer_bytes; /* and at its end */
    /* From where a record begins to where the next one does. 0: they lie one behind the other and
     * fill the file. Less than a record: they overlap; more: what lies between is skipped. */
    int64_t every_bytes;
    cadre_dtype dtype; /* of the numbers, little endian; CADRE_DTYPE_NONE: bytes, CADRE_U8 */
} cadre_fixed_length_options;

/* Records of a fixed size, file after file, each as [record_bytes / bytes of one element] of the
 * type. The files' sizes are read here, the records when requested. A file whose size is not header
 * + footer + a whole number of records is DATA_LOSS; with every_bytes what is left over at its end,
 * too little for one more record, is left out instead, and no record goes from one file into the
 * next. Samples are the records, each with all of its bytes. INVALID_ARGUMENT: sizes that cannot
 * be; a type that is no number. `options` may be NULL. Indexable.
 * (tf.data.FixedLengthRecordDataset, tf.io.decode_raw.)
 *
 * Files of tokens, of which each record of T + 1 has the T that are given and the T that follow:
 *
 *     const cadre_fixed_length_options tokens = {
 *         .header_bytes = 256 * sizeof(int32_t),
 *         .every_bytes = T * sizeof(uint16_t),
 *         .dtype = CADRE_U16};
 *     data = cadre_dataset_fixed_length(paths, count, (T + 1) * sizeof(uint16_t), &tokens); */
CADRE_API cadre_dataset *cadre_dataset_fixed_length(const char *const paths[], size_t path_count,
    int64_t record_bytes, const cadre_fixed_length_options *options);

/* The rows of an array saved by numpy (format 1.0 or 2.0, little endian, C order): element i has
 * shape[1:]. The header is read here, the rows when requested. A file cut short is DATA_LOSS, which
 * names what it should hold. Indexable; features and labels of two files are zipped. */
CADRE_API cadre_dataset *cadre_dataset_npy(const char *path);

/* --- the files of a list of names --- */

/* For cadre_dataset_flat_map and cadre_dataset_interleave on names of files, such as those of
 * cadre_dataset_list_files: the records of the file that the element (one scalar string) names.
 * `user` is NULL, or the options, which outlive the dataset.
 *
 *     data = cadre_dataset_interleave(names, cadre_open_tfrecord, NULL, NULL); */
CADRE_API cadre_status cadre_open_tfrecord(
    const cadre_element *in, cadre_dataset **ret_data, void *user);

/* The lines of the file that the element names, as cadre_dataset_text_lines reads them. */
CADRE_API cadre_status cadre_open_text_lines(
    const cadre_element *in, cadre_dataset **ret_data, void *user);

#ifdef __cplusplus
}
#endif
#endif
