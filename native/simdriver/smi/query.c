/* --query-gpu and --query-compute-apps: tables that scripts read. */
#include <stdio.h>
#include <string.h>

#include "cards.h"
#include "fields.h"
#include "screen.h"

#define MAX_FIELDS 128
#define BAD_ARGUMENT 2

struct names {
    int count;
    char text[4096];
    char *name[MAX_FIELDS];
};

static void split(struct names *names, const char *fields) {
    char *rest;
    names->count = 0;
    snprintf(names->text, sizeof names->text, "%s", fields);
    for (char *name = strtok_r(names->text, ", ", &rest); name && names->count < MAX_FIELDS;
         name = strtok_r(NULL, ", ", &rest))
        names->name[names->count++] = name;
}

static int refuse(const char *name) {
    printf("Field \"%s\" is not a valid field to query.\n\n", name);
    return BAD_ARGUMENT;
}

static void print_heading(const char *name, const char *unit, int is_last) {
    printf(unit ? "%s [%s]%s" : "%s%s%s", name, unit ? unit : "", is_last ? "\n" : ", ");
}

int query_cards(const char *wanted, struct format format, const char *list) {
    struct names names;
    const struct field *fields[MAX_FIELDS];
    device_t cards[MAX_SHOWN];
    char text[256];
    split(&names, wanted);
    if (!names.count) return refuse(wanted);
    for (int i = 0; i < names.count; i++)
        if (!(fields[i] = field_by_name(names.name[i]))) return refuse(names.name[i]);
    int code = 0, count = cards_find(list, cards, &code);
    for (int i = 0; count > 0 && format.has_header && i < names.count; i++)
        print_heading(fields[i]->name, fields[i]->unit, i == names.count - 1);
    for (int card = 0; card < count; card++)
        for (int i = 0; i < names.count; i++) {
            field_text(fields[i], cards[card], format.has_units, text, sizeof text);
            printf("%s%s", text, i == names.count - 1 ? "\n" : ", ");
        }
    return code;
}

/* Writes a field of a process, or of its card. Returns 0 if there is no field with this name. */
static int process_field(const char *name, device_t card, const struct process_v2 *process,
                         struct format format, char *text, unsigned size) {
    static const char *const OF_CARD[] = {"timestamp", "gpu_name", "gpu_bus_id", "gpu_serial",
                                          "gpu_uuid"};
    if (strcmp(name, "pid") == 0) snprintf(text, size, "%u", process->pid);
    else if (strcmp(name, "process_name") == 0 || strcmp(name, "name") == 0)
        process_name(process->pid, text, size);
    else if (strcmp(name, "used_memory") == 0 || strcmp(name, "used_gpu_memory") == 0)
        snprintf(text, size, format.has_units ? "%llu MiB" : "%llu", process->used / MIB);
    else {
        for (size_t i = 0; i < sizeof OF_CARD / sizeof *OF_CARD; i++) {
            if (strcmp(name, OF_CARD[i]) != 0) continue;
            if (card) field_text(field_by_name(name), card, format.has_units, text, size);
            return 1;
        }
        return 0;
    }
    return 1;
}

int query_processes(const char *wanted, struct format format, const char *list) {
    struct names names;
    struct process_v2 processes[MAX_PROCESSES], nobody = {0, 0, 0, 0};
    device_t cards[MAX_SHOWN];
    char text[256];
    split(&names, wanted);
    if (!names.count) return refuse(wanted);
    for (int i = 0; i < names.count; i++)
        if (!process_field(names.name[i], NULL, &nobody, format, text, sizeof text))
            return refuse(names.name[i]);
    int code = 0, count = cards_find(list, cards, &code);
    for (int i = 0; count > 0 && format.has_header && i < names.count; i++)
        if (strncmp(names.name[i], "used_", 5) == 0)
            print_heading("used_gpu_memory", "MiB", i == names.count - 1);
        else
            print_heading(names.name[i], NULL, i == names.count - 1);
    for (int card = 0; card < count; card++) {
        int found = processes_find(cards[card], processes);
        for (int j = 0; j < found; j++)
            for (int i = 0; i < names.count; i++) {
                process_field(names.name[i], cards[card], &processes[j], format, text, sizeof text);
                printf("%s%s", text, i == names.count - 1 ? "\n" : ", ");
            }
    }
    return code;
}
