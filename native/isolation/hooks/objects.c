#define _GNU_SOURCE
#include "objects.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

struct link_map *object_at(const void *address) {
    Dl_info unused;
    struct link_map *object = NULL;
    return dladdr1(address, &unused, (void **)&object, RTLD_DL_LINKMAP) ? object : NULL;
}

/* The loader adds the object's address to the pointers in its dynamic section, but not where this
 * section cannot be written. */
static const void *pointer_in(const struct link_map *object, ElfW(Sxword) tag) {
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        ElfW(Addr) pointer = entry->d_un.d_ptr;
        if (entry->d_tag == tag)
            return (const void *)(pointer < object->l_addr ? pointer + object->l_addr : pointer);
    }
    return NULL;
}

static const char *soname_of(const struct link_map *object) {
    const char *strings = pointer_in(object, DT_STRTAB);
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SONAME && strings) return strings + entry->d_un.d_val;
    return "";
}

/* Linkers write the strings directly behind the symbols, whose number is written nowhere. */
static void *symbol_in(const struct link_map *object, const char *name) {
    const char *strings = pointer_in(object, DT_STRTAB);
    const ElfW(Sym) *symbol = pointer_in(object, DT_SYMTAB);
    for (; symbol && strings && (const char *)(symbol + 1) <= strings; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && strcmp(strings + symbol->st_name, name) == 0)
            return (void *)(object->l_addr + symbol->st_value);
    return NULL;
}

/* Before glibc 2.34, the functions of the loader are in libdl. */
void *in_c_library(const char *function) {
    const struct link_map *object = object_at((const void *)&in_c_library);
    void *found = NULL;
    while (object && object->l_prev) object = object->l_prev;
    for (; object && !found; object = object->l_next)
        if (strcmp(soname_of(object), "libc.so.6") == 0 ||
            strcmp(soname_of(object), "libdl.so.2") == 0)
            found = symbol_in(object, function);
    return found;
}

static bool begins_with(const char *text, const char *beginning) {
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

bool is_named(const struct link_map *object, const char *name) {
    const char *path = object->l_name ? object->l_name : "", *slash = strrchr(path, '/');
    return begins_with(slash ? slash + 1 : path, name) || begins_with(soname_of(object), name);
}

void *keep_loaded(const struct link_map *object) {
    Lmid_t namespace;
    int how = RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE;
    if (dlinfo((void *)object, RTLD_DI_LMID, &namespace)) return NULL;
    return dlmopen(namespace, object->l_name, how);
}

struct order {
    ElfW(Addr) limiter, other;
    bool is_past_limiter, is_behind;
};

/* The loader calls this for each object, in the order in which it loaded them. */
static int compare(struct dl_phdr_info *object, size_t size, void *data) {
    struct order *order = data;
    (void)size;
    if (object->dlpi_addr == order->limiter) order->is_past_limiter = true;
    else if (object->dlpi_addr == order->other) order->is_behind = order->is_past_limiter;
    return order->is_behind;
}

bool is_behind_limiter(const struct link_map *object) {
    const struct link_map *limiter = object_at((const void *)&is_behind_limiter);
    if (!limiter) return false;
    struct order order = {limiter->l_addr, object->l_addr, false, false};
    dl_iterate_phdr(compare, &order);
    return order.is_behind;
}
