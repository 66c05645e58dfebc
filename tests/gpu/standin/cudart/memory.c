/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: a device's memory. It is mapped twice: at the device's addresses, which
 * no thread may touch while no kernel runs, and at a shadow, which copies use. Between blocks there
 * is the mapping of an empty file: an access there is stopped, in a kernel too. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE    ((size_t)4096)
#define ALIGN   ((size_t)256)
#define PATTERN 0xcb /* the content of memory that was never written */

static int empty_fd = -1;

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* The pages of a block: it ends where they end. */
static size_t region_begin(const struct standin_block *block)
{
    return block->offset / PAGE * PAGE;
}

static size_t region_end(const struct standin_block *block)
{
    return block->offset + round_up(block->bytes, ALIGN);
}

cudaError_t standin_memory_open_locked(struct standin_device *device)
{
    if (device->fd >= 0) {
        return cudaSuccess;
    }
    if (empty_fd < 0) {
        empty_fd = memfd_create("stand-in between blocks", MFD_CLOEXEC);
    }
    int fd = memfd_create("stand-in device memory", MFD_CLOEXEC);
    device->bytes = round_up(device->capacity * 2, PAGE) + ((size_t)64 << 20);
    if (empty_fd < 0 || fd < 0 || ftruncate(fd, (off_t)device->bytes) != 0) {
        goto failed;
    }
    device->shadow = mmap(NULL, device->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *window = mmap(NULL, device->bytes, PROT_NONE, MAP_SHARED, empty_fd, 0);
    if (device->shadow == MAP_FAILED || window == MAP_FAILED) {
        goto failed;
    }
    device->fd = fd;
    device->next = PAGE;
    device->window = window;
    return cudaSuccess;
failed:
    perror("stand-in: memory of a device");
    if (fd >= 0) {
        (void)close(fd);
    }
    return cudaErrorInitializationError;
}

/* Where `pages` bytes and a page before them are free, at or after `from`; the index in the list of
 * blocks too. 0: nowhere. */
static size_t find_gap(
    const struct standin_device *device, size_t from, size_t pages, size_t *ret_place)
{
    size_t begin = PAGE;
    for (size_t i = 0; i <= device->block_count; i++) {
        size_t end = i < device->block_count ? region_begin(&device->blocks[i]) : device->bytes;
        size_t at = (begin > from ? begin : from) + PAGE;
        if (end > PAGE && at + pages <= end - PAGE) {
            *ret_place = i;
            return at;
        }
        begin = i < device->block_count ? region_end(&device->blocks[i]) : begin;
    }
    return 0;
}

static bool make_room(struct standin_device *device)
{
    if (device->block_count < device->block_limit) {
        return true;
    }
    size_t limit = device->block_limit == 0 ? 64 : device->block_limit * 2;
    struct standin_block *blocks = realloc(device->blocks, limit * sizeof(*blocks));
    if (blocks == NULL) {
        return false;
    }
    device->blocks = blocks;
    device->block_limit = limit;
    return true;
}

static int protection(const struct standin_device *device)
{
    return device->opened > 0 ? PROT_READ | PROT_WRITE : PROT_NONE;
}

cudaError_t standin_memory_get_locked(struct standin_device *device, size_t bytes, void **ret)
{
    cudaError_t error = standin_memory_open_locked(device);
    if (error != cudaSuccess) {
        return error;
    }
    if (bytes > device->capacity - device->used || !make_room(device)) {
        return cudaErrorMemoryAllocation;
    }
    size_t pages = round_up(round_up(bytes, ALIGN), PAGE);
    size_t place = 0;
    size_t at = find_gap(device, device->next, pages, &place);
    at = at != 0 ? at : find_gap(device, 0, pages, &place);
    if (at == 0) {
        return cudaErrorMemoryAllocation;
    }
    if (mmap(device->window + at, pages, protection(device), MAP_SHARED | MAP_FIXED, device->fd,
            (off_t)at) == MAP_FAILED) {
        return cudaErrorMemoryAllocation;
    }
    memset(device->shadow + at, PATTERN, pages);
    memmove(&device->blocks[place + 1], &device->blocks[place],
        (device->block_count - place) * sizeof(device->blocks[0]));
    device->blocks[place] =
        (struct standin_block){.offset = at + pages - round_up(bytes, ALIGN), .bytes = bytes};
    device->block_count++;
    device->used += bytes;
    device->next = at + pages;
    *ret = device->window + device->blocks[place].offset;
    return cudaSuccess;
}

/* The block that `offset` is in, or behind; block_count: none. */
static size_t find_block(const struct standin_device *device, size_t offset)
{
    size_t low = 0;
    size_t high = device->block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (device->blocks[middle].offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 ? device->block_count : low - 1;
}

/* The rest of a block's pages must be as it was. */
static bool surroundings_untouched(
    const struct standin_device *device, const struct standin_block *block)
{
    bool untouched = true;
    for (size_t i = region_begin(block); i < block->offset; i++) {
        untouched &= (unsigned char)device->shadow[i] == PATTERN;
    }
    for (size_t i = block->offset + block->bytes; i < region_end(block); i++) {
        untouched &= (unsigned char)device->shadow[i] == PATTERN;
    }
    return untouched;
}

bool standin_memory_give_locked(struct standin_device *device, void *memory)
{
    size_t offset = (size_t)((char *)memory - device->window);
    size_t i = find_block(device, offset);
    if (i == device->block_count || device->blocks[i].offset != offset) {
        return false;
    }
    struct standin_block block = device->blocks[i];
    if (!surroundings_untouched(device, &block)) {
        fprintf(stderr, "stand-in: something wrote beside the block of %zu bytes at %p\n",
            block.bytes, memory);
        device->error = cudaErrorIllegalAddress;
    }
    size_t begin = region_begin(&block);
    size_t pages = region_end(&block) - begin;
    (void)mmap(device->window + begin, pages, protection(device), MAP_SHARED | MAP_FIXED, empty_fd,
        (off_t)begin);
    (void)fallocate(
        device->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)begin, (off_t)pages);
    device->used -= block.bytes;
    device->block_count--;
    memmove(&device->blocks[i], &device->blocks[i + 1],
        (device->block_count - i) * sizeof(device->blocks[0]));
    return true;
}

struct standin_device *standin_memory_of(const void *pointer)
{
    for (int i = 0; i < standin_device_count(); i++) {
        struct standin_device *device = standin_device_at(i);
        uintptr_t begin = (uintptr_t)device->window;
        if (begin != 0 && (uintptr_t)pointer >= begin &&
            (uintptr_t)pointer - begin < device->bytes) {
            return device;
        }
    }
    return NULL;
}

bool standin_memory_holds_locked(
    const struct standin_device *device, const void *pointer, size_t bytes)
{
    size_t offset = (size_t)((const char *)pointer - device->window);
    size_t i = find_block(device, offset);
    if (i == device->block_count) {
        return false;
    }
    size_t within = offset - device->blocks[i].offset;
    return within <= device->blocks[i].bytes && bytes <= device->blocks[i].bytes - within;
}

void *standin_reach(const void *pointer, size_t bytes)
{
    pthread_mutex_lock(&standin_mutex);
    struct standin_device *device = standin_memory_of(pointer);
    char *reached = (char *)(uintptr_t)pointer;
    if (device != NULL) {
        reached = standin_memory_holds_locked(device, pointer, bytes)
                      ? device->shadow + (reached - device->window)
                      : NULL;
    }
    pthread_mutex_unlock(&standin_mutex);
    return reached;
}

static void protect(const struct standin_device *device)
{
    size_t used =
        device->block_count == 0 ? 0 : region_end(&device->blocks[device->block_count - 1]);
    if (used > 0 && mprotect(device->window, used, protection(device)) != 0) {
        perror("stand-in: mprotect");
        abort();
    }
}

void standin_window_open_locked(struct CUstream_st *stream)
{
    if (!stream->opened) {
        stream->opened = true;
        if (stream->device->opened++ == 0) {
            protect(stream->device);
        }
    }
}

void standin_window_close_locked(struct CUstream_st *stream)
{
    if (stream->opened) {
        stream->opened = false;
        if (--stream->device->opened == 0) {
            protect(stream->device);
        }
    }
}

size_t standin_memory_used(int device)
{
    const struct standin_device *asked = standin_device_at(device);
    pthread_mutex_lock(&standin_mutex);
    size_t used = asked != NULL ? asked->used : 0;
    pthread_mutex_unlock(&standin_mutex);
    return used;
}

size_t standin_memory_blocks(int device)
{
    const struct standin_device *asked = standin_device_at(device);
    pthread_mutex_lock(&standin_mutex);
    size_t blocks = asked != NULL ? asked->block_count : 0;
    pthread_mutex_unlock(&standin_mutex);
    return blocks;
}
