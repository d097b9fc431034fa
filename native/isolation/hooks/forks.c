/* Nothing of the driver survives a fork: the child has no contexts, and none of the parent's
 * memory. So all records are emptied in the child, and all locks are new: a thread that held one at
 * the fork does not exist there. */
#include "../../process/at_fork.h"
#include "charges.h"
#include "graphs.h"
#include "pools.h"
#include "share.h"
#include "virtual.h"

static void in_child(void) {
    ledger_forget_all();
    contexts_after_fork();
    pools_after_fork();
    graphs_after_fork();
    share_after_fork();
    virtual_after_fork();
}

__attribute__((constructor)) static void register_fork_handler(void) {
    at_fork(NULL, NULL, in_child);
}
