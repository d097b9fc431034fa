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
static const char *strings_of(const struct link_map *object, ElfW(Addr) pointer) {
    return (const char *)(pointer < object->l_addr ? pointer + object->l_addr : pointer);
}

static const char *soname_of(const struct link_map *object) {
    const char *strings = NULL;
    const ElfW(Dyn) *soname = NULL;
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) strings = strings_of(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SONAME) soname = entry;
    }
    return strings && soname ? strings + soname->d_un.d_val : "";
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
