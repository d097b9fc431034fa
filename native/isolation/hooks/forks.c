/* Nothing of the driver survives a fork: the child begins anew. */
#include "charges.h"
#include "graphs.h"
#include "pools.h"
#include "share.h"

extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle;

static void in_child(void) {
    ledger_forget_all();
    contexts_after_fork();
    pools_after_fork();
    graphs_after_fork();
    share_after_fork();
}

__attribute__((constructor)) static void watch_forks(void) {
    __register_atfork(NULL, NULL, in_child, __dso_handle);
}
