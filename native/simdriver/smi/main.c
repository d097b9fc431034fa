/* An nvidia-smi for machines that have none, with the options that are used most. */
#include <stdio.h>
#include <string.h>

#include "library.h"
#include "screen.h"

#define BAD_ARGUMENT 2
#define NO_DRIVER 9

static const char USAGE[] =
    "nvidia-smi [OPTION]...          a simulated card's, by gpupool\n"
    "  (none)                        a screen of all cards\n"
    "  -L, --list-gpus               a line for each card\n"
    "  -q, --query                   all about each card\n"
    "  -i, --id=LIST                 only these: indexes, UUIDs, PCI bus ids\n"
    "  --query-gpu=FIELD,...         a table, with\n"
    "  --query-compute-apps=FIELD,...\n"
    "  --format=csv[,noheader][,nounits]\n";

struct command {
    int is_list, is_report, is_help;
    const char *id, *cards, *processes, *format;
};

/* The value of an option that is written "--name=value", "-n value" or "-n=value". */
static const char *value_of(const char *option, char **arguments, int *position) {
    const char *argument = arguments[*position];
    size_t length = strlen(option);
    if (strncmp(argument, option, length) != 0) return NULL;
    if (argument[length] == '=') return argument + length + 1;
    if (argument[length] || !arguments[*position + 1]) return NULL;
    return arguments[++*position];
}

static int parse(struct command *command, char **arguments) {
    for (int i = 1; arguments[i]; i++) {
        const char *argument = arguments[i], *value;
        if (!strcmp(argument, "-L") || !strcmp(argument, "--list-gpus")) command->is_list = 1;
        else if (!strcmp(argument, "-q") || !strcmp(argument, "--query")) command->is_report = 1;
        else if (!strcmp(argument, "-h") || !strcmp(argument, "--help")) command->is_help = 1;
        else if ((value = value_of("--id", arguments, &i))) command->id = value;
        else if ((value = value_of("-i", arguments, &i))) command->id = value;
        else if ((value = value_of("--query-gpu", arguments, &i))) command->cards = value;
        else if ((value = value_of("--query-compute-apps", arguments, &i)))
            command->processes = value;
        else if ((value = value_of("--format", arguments, &i))) command->format = value;
        else {
            printf("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"
                   "\n");
            return BAD_ARGUMENT;
        }
    }
    return 0;
}

static int explain(int result) {
    if (result == NVML_LIBRARY_NOT_FOUND)
        printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n");
    else if (result == NO_DRIVER)
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
    else
        printf("Failed to initialize NVML: %s\n", nvml.nvmlErrorString(result));
    return result;
}

static int query(const struct command *command) {
    struct format format = {1, 1};
    if (!command->format || strncmp(command->format, "csv", 3) != 0) {
        printf("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n\n");
        return BAD_ARGUMENT;
    }
    format.has_header = !strstr(command->format, "noheader");
    format.has_units = !strstr(command->format, "nounits");
    return command->cards ? query_cards(command->cards, format, command->id)
                          : query_processes(command->processes, format, command->id);
}

int main(int count, char **arguments) {
    struct command command = {0};
    (void)count;
    int result = parse(&command, arguments);
    if (result) return result;
    if (command.is_help) {
        fputs(USAGE, stdout);
        return 0;
    }
    result = library_open();
    if (result != NVML_OK) return explain(result);
    if (command.cards || command.processes) return query(&command);
    if (command.is_list) return show_list(command.id);
    return command.is_report ? show_report(command.id) : show_screen(command.id);
}
