/* The commands of nvidia-smi. Each returns the exit code of the program; `list` is the value of
 * --id. */
#ifndef SIMDRIVER_SMI_SCREEN_H
#define SIMDRIVER_SMI_SCREEN_H

int show_screen(const char *list);
int show_list(const char *list);
int show_report(const char *list);

struct format {
    int has_header, has_units;
};

int query_cards(const char *fields, struct format format, const char *list);
int query_processes(const char *fields, struct format format, const char *list);

#endif
