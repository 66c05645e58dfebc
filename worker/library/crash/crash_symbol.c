/* SPDX-License-Identifier: Apache-2.0
 * Symbols out of files: dladdr finds exported ones only, and takes a lock. Files are not trusted:
 * every offset is checked against the file's size. crash.c calls it. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/library/crash/crash_internal.h"

struct image {
    const uint8_t *bytes;
    size_t size;
};

/* false: it is not in the file. Copied, because it may be unaligned. */
static bool crash_symbol_take(
    const struct image *image, uint64_t offset, void *ret_item, size_t size)
{
    if (offset > image->size || image->size - offset < size) {
        return false;
    }
    memcpy(ret_item, image->bytes + offset, size);
    return true;
}

static bool take_section(
    const struct image *image, const ElfW(Ehdr) * header, uint64_t number, ElfW(Shdr) * ret_section)
{
    if (number >= header->e_shnum || header->e_shoff > image->size) {
        return false;
    }
    return crash_symbol_take(
        image, header->e_shoff + number * sizeof *ret_section, ret_section, sizeof *ret_section);
}

/* The table with all symbols, else the one with those that are exported. */
static bool find_table(const struct image *image, const ElfW(Ehdr) * header, ElfW(Shdr) * ret_table)
{
    ElfW(Shdr) section;
    bool found = false;
    for (uint64_t i = 0; take_section(image, header, i, &section); i++) {
        if (section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && !found)) {
            *ret_table = section;
            found = true;
        }
        if (section.sh_type == SHT_SYMTAB) {
            break;
        }
    }
    return found;
}

static void copy_name(const struct image *image, uint64_t offset, char name[CRASH_NAME_BYTES])
{
    size_t length = 0;
    while (length < CRASH_NAME_BYTES - 1 && offset + length < image->size &&
           image->bytes[offset + length] != '\0') {
        name[length] = (char)image->bytes[offset + length];
        length++;
    }
    name[length] = '\0';
}

static bool find_in(const struct image *image, uintptr_t address, char name[CRASH_NAME_BYTES])
{
    ElfW(Ehdr) header;
    ElfW(Shdr) table = {0};
    ElfW(Shdr) names = {0};
    ElfW(Sym) symbol;
    if (!crash_symbol_take(image, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof table ||
        !find_table(image, &header, &table) ||
        !take_section(image, &header, table.sh_link, &names)) {
        return false;
    }
    for (uint64_t at = 0; at + sizeof symbol <= table.sh_size; at += sizeof symbol) {
        if (table.sh_offset > image->size ||
            !crash_symbol_take(image, table.sh_offset + at, &symbol, sizeof symbol)) {
            return false;
        }
        if ((symbol.st_info & 0xf) == STT_FUNC && symbol.st_shndx != SHN_UNDEF &&
            address >= symbol.st_value && address - symbol.st_value < symbol.st_size &&
            names.sh_offset <= image->size) {
            copy_name(image, names.sh_offset + symbol.st_name, name);
            return name[0] != '\0';
        }
    }
    return false;
}

bool crash_symbol_find(const char *path, uintptr_t address, char name[CRASH_NAME_BYTES])
{
    struct stat about;
    name[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool found = false;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            const struct image image = {.bytes = bytes, .size = (size_t)about.st_size};
            found = find_in(&image, address, name);
            munmap(bytes, (size_t)about.st_size);
        }
    }
    close(fd);
    return found;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35: without a lock */
static const struct link_map *find_module(uintptr_t address, bool *ret_in_one)
{
    struct dl_find_object object;
    *ret_in_one = _dl_find_object((void *)address, &object) == 0;
    return *ret_in_one ? object.dlfo_link_map : NULL;
}
#else
static const struct link_map *find_module(uintptr_t address, bool *ret_in_one)
{
    (void)address;
    *ret_in_one = false;
    return NULL;
}
#endif

void crash_location_find(
    uintptr_t address, const char *program, struct crash_location *ret_location)
{
    bool in_one;
    const struct link_map *map = find_module(address, &in_one);
    *ret_location = (struct crash_location){.offset = address};
    if (!in_one) {
        return;
    }
    const char *path = map == NULL || map->l_name == NULL ? "" : map->l_name;
    const char *slash = strrchr(path, '/');
    ret_location->offset = address - (map != NULL ? map->l_addr : 0);
    ret_location->in_program = path[0] == '\0';
    ret_location->module = path[0] == '\0' ? program : slash != NULL ? slash + 1 : path;
    ret_location->in_libc = strncmp(ret_location->module, "libc.so", 7) == 0;
    (void)crash_symbol_find(
        path[0] == '\0' ? "/proc/self/exe" : path, ret_location->offset, ret_location->function);
}
