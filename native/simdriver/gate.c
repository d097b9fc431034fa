#define _GNU_SOURCE
#include "gate.h"

#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define VARIABLE "GPUPOOL_SIM_FAULTS"

static struct call_fault own[MAX_CALL_FAULTS]; /* of the variable */
static bool has_own;

/* One word of a fault: after=N, times=N or card=N. */
static bool read_option(struct call_fault *fault, const char *word) {
    char *end;
    const char *equals = strchr(word, '=');
    unsigned long number = equals ? strtoul(equals + 1, &end, 10) : 0;
    if (!equals || end == equals + 1 || *end || number >= ALWAYS) return false;
    if (strncmp(word, "after=", 6) == 0) fault->after = (uint32_t)number;
    else if (strncmp(word, "times=", 6) == 0) fault->times = (uint32_t)number;
    else if (strncmp(word, "card=", 5) == 0) fault->card = (int32_t)number;
    else return false;
    return true;
}

/* CALL=RESULT, where RESULT is a number or "hang", and options. */
static bool read_fault(struct call_fault *fault, const char *line) {
    char text[256], *rest, *end;
    if (snprintf(text, sizeof text, "%s", line) >= (int)sizeof text) return false;
    char *equals = strchr(text, '=');
    *fault = (struct call_fault){.card = EVERY_CARD, .times = ALWAYS};
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof fault->call) return false;
    memcpy(fault->call, text, (size_t)(equals - text));
    char *word = strtok_r(equals + 1, ",", &rest);
    if (!word) return false;
    fault->result = strcmp(word, "hang") == 0 ? CALL_HANGS : (int32_t)strtol(word, &end, 10);
    if (fault->result != CALL_HANGS && (end == word || *end || fault->result <= 0)) return false;
    while ((word = strtok_r(NULL, ",", &rest)))
        if (!read_option(fault, word)) return false;
    return true;
}

__attribute__((constructor)) static void read_own(void) {
    const char *value = getenv(VARIABLE);
    char *copy = value ? strdup(value) : NULL, *rest = NULL;
    int count = 0;
    for (char *text = copy ? strtok_r(copy, ";", &rest) : NULL; text;
         text = strtok_r(NULL, ";", &rest)) {
        text += strspn(text, " ");
        if (count < MAX_CALL_FAULTS && read_fault(&own[count], text)) own[count++].id = 1;
        else fprintf(stderr, "gpupool: simulated driver: " VARIABLE ": not a fault: %s\n", text);
    }
    has_own = count > 0;
    free(copy);
}

static bool has_name(const struct call_fault *fault, const char *call) {
    size_t length = strnlen(fault->call, sizeof fault->call);
    if (length && fault->call[length - 1] == '*')
        return strncmp(fault->call, call, length - 1) == 0;
    return length < sizeof fault->call && strcmp(fault->call, call) == 0;
}

/* False if the count is 0 already. */
static bool count_down(_Atomic uint32_t *count) {
    uint32_t left = atomic_load(count);
    while (left && left != ALWAYS)
        if (atomic_compare_exchange_weak(count, &left, left - 1)) return true;
    return left == ALWAYS;
}

/* Wakes up once a second, too: who took the fault away may have died before it could wake us. */
static void hang(const _Atomic uint32_t *id, uint32_t value) {
    const struct timespec second = {1, 0};
    while (atomic_load(id) == value) syscall(SYS_futex, id, FUTEX_WAIT, value, &second, NULL, 0);
}

static int result_in(struct call_fault *faults, const struct sim_state *state, const char *call,
                     const uintptr_t *arguments) {
    for (int i = 0; i < MAX_CALL_FAULTS; i++) {
        struct call_fault *fault = &faults[i];
        uint32_t id = atomic_load(&fault->id);
        if (!id || !has_name(fault, call)) continue;
        if (fault->card != EVERY_CARD &&
            (!state || gate_card(state, call, arguments) != fault->card))
            continue;
        if (count_down(&fault->after) || !count_down(&fault->times)) continue;
        if (fault->result != CALL_HANGS) return fault->result;
        hang(&fault->id, id);
    }
    return PASS;
}

int gate_result(const char *call, const uintptr_t *arguments) {
    struct sim_state *state = gate_state();
    int result = has_own ? result_in(own, state, call, arguments) : PASS;
    if (result == PASS && state &&
        atomic_load_explicit(&state->call_fault_count, memory_order_relaxed))
        result = result_in(state->call_faults, state, call, arguments);
    return result == PASS ? gate_refusal(call) : result;
}

bool is_one_of(const char *call, const char *const *names) {
    while (*names && strcmp(*names, call) != 0) names++;
    return *names != NULL;
}
