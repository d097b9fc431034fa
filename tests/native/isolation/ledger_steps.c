/* Counts the instructions of forgetting all memory of a context at once, and of forgetting the same
 * memory piece by piece. Prints the second number, and the first, which is counted up to
 * `words[2]` times the second. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger.h"

#define CONTEXT 7
#define FIRST 0x7f0000000000ull
#define SIZE 512ull

static uint64_t key(uint64_t number) {
    return ledger_key(POINTER, FIRST + number * SIZE);
}

static void put_all(uint64_t count) {
    struct entry replaced;
    for (uint64_t i = 0; i < count; i++) {
        struct entry entry = {key(i), SIZE, CONTEXT, 0, 0, 1};
        if (!ledger_put(&entry, &replaced)) exit(3);
    }
}

static void piece_by_piece(uint64_t count) {
    struct entry taken;
    for (uint64_t i = 0; i < count; i++)
        if (!ledger_take(key(i), &taken)) _exit(4);
}

static void at_once(uint64_t count) {
    uint64_t bytes[MAX_CARDS] = {0};
    ledger_take_of(CONTEXT, bytes);
    if (bytes[0] != count * SIZE) _exit(5);
}

static long instructions(void (*forget)(uint64_t), uint64_t count, long most) {
    int status;
    long steps = 0;
    pid_t pid = fork();
    if (!pid) {
        put_all(count);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        forget(count);
        _exit(0);
    }
    for (waitpid(pid, &status, 0); WIFSTOPPED(status) && steps < most; steps++) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL)) exit(6);
        waitpid(pid, &status, 0);
    }
    if (WIFSTOPPED(status)) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    } else if (status) {
        exit(7);
    }
    return steps;
}

int main(int count, char **words) {
    if (count < 3) return 2;
    uint64_t allocations = strtoull(words[1], NULL, 10);
    long each = instructions(piece_by_piece, allocations, __LONG_MAX__);
    printf("%ld %ld\n", each, instructions(at_once, allocations, each * atol(words[2])));
    return 0;
}
