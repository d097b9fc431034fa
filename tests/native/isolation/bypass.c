/* Tries one way to reach the driver past the limiter. Prints the memory of the device in MiB, as
 * the program sees it, and the result of an allocation of 4000 MiB. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long pointer_t;
typedef void *(*find_t)(const char *name);

static void *library;

static void *by_dlsym(const char *name) {
    return dlsym(library, name);
}

/* With any version: the symbols of the driver have none. */
static void *by_dlvsym(const char *name) {
    return dlvsym(library, name, "DRIVER_1.0");
}

static void *by_default(const char *name) {
    return dlsym(RTLD_DEFAULT, name);
}

static void *by_asking(const char *name) {
    int (*ask)(const char *, void **, int, unsigned long long, int *);
    void *found = NULL;
    char base[64];
    int status;
    *(void **)&ask = dlsym(library, "cuGetProcAddress_v2");
    ask("cuGetProcAddress", (void **)&ask, 12040, 0, &status);
    snprintf(base, sizeof base, "%.*s", (int)strcspn(name, "_"), name);
    ask(base, &found, 12040, 0, &status);
    return found;
}

/* Searches the symbol table of the driver's file, as the dynamic linker does. */
static int in_object(struct dl_phdr_info *object, size_t size, void *data) {
    void **wanted = data;
    ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    size_t count = 0;
    (void)size;
    if (!strstr(object->dlpi_name, (const char *)wanted[2])) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        ElfW(Dyn) *entry = (ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag; entry++) {
            if (entry->d_tag == DT_SYMTAB) symbols = (void *)entry->d_un.d_ptr;
            if (entry->d_tag == DT_STRTAB) strings = (void *)entry->d_un.d_ptr;
        }
        /* Enough for the files that are built here. */
        count = 4096;
    }
    for (size_t i = 0; symbols && i < count; i++) {
        if (strcmp(strings + symbols[i].st_name, wanted[0]) != 0 || !symbols[i].st_value) continue;
        wanted[1] = (void *)(object->dlpi_addr + symbols[i].st_value);
        return 1;
    }
    return 0;
}

static const char *driver_path;

static void *by_hand(const char *name) {
    void *wanted[3] = {(void *)name, NULL, (void *)driver_path};
    dl_iterate_phdr(in_object, wanted);
    return wanted[1];
}

static int report(find_t find) {
    int (*init)(unsigned), (*retain)(void **, int), (*use)(void *);
    int (*info)(size_t *, size_t *), (*alloc)(pointer_t *, size_t);
    void *context;
    size_t unused, total;
    pointer_t pointer;
    *(void **)&init = find("cuInit");
    *(void **)&retain = find("cuDevicePrimaryCtxRetain");
    *(void **)&use = find("cuCtxSetCurrent");
    *(void **)&info = find("cuMemGetInfo_v2");
    *(void **)&alloc = find("cuMemAlloc_v2");
    if (!init || !retain || !use || !info || !alloc) return puts("nothing found"), 0;
    if (init(0) || retain(&context, 0) || use(context) || info(&unused, &total)) return 1;
    printf("%zu %d\n", total >> 20, alloc(&pointer, 4000ull << 20));
    return 0;
}

/* By a library that is linked with the driver; its function `linked` does what `report` does. */
static int by_a_linked_library(const char *path, int flags, int is_elsewhere) {
    void *user = is_elsewhere ? dlmopen(LM_ID_NEWLM, path, flags) : dlopen(path, flags);
    int (*linked)(void);
    if (!user) return puts(dlerror()), 1;
    *(void **)&linked = dlsym(user, "linked");
    return linked();
}

int main(int count, char **words) {
    const char *way = count > 1 ? words[1] : "", *path = count > 2 ? words[2] : "libcuda.so.1";
    driver_path = path;
    if (strcmp(way, "linked") == 0) return by_a_linked_library(path, RTLD_NOW, 0);
    if (strcmp(way, "linked-deepbind") == 0)
        return by_a_linked_library(path, RTLD_NOW | RTLD_DEEPBIND, 0);
    if (strcmp(way, "linked-dlmopen") == 0) return by_a_linked_library(path, RTLD_NOW, 1);
    if (strcmp(way, "dlmopen") == 0) library = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    else if (strcmp(way, "deepbind") == 0) library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    else if (strcmp(way, "by-hand") == 0) library = dlopen("libcuda.so.1", RTLD_NOW);
    else library = dlopen(path, RTLD_NOW | (strcmp(way, "default") == 0 ? RTLD_GLOBAL : 0));
    if (!library) return puts(dlerror()), 1;
    if (strcmp(way, "dlvsym") == 0) return report(by_dlvsym);
    if (strcmp(way, "default") == 0) return report(by_default);
    if (strcmp(way, "asked") == 0) return report(by_asking);
    if (strcmp(way, "by-hand") == 0) return report(by_hand);
    return report(by_dlsym);
}
