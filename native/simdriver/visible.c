#include "visible.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *text) {
    return text + strspn(text, " \t");
}

static size_t item_length(const char *item) {
    size_t length = strcspn(item, ",");
    while (length && strchr(" \t", item[length - 1])) length--;
    return length;
}

/* The position in `cards` of the card that the item names; -1 if no card or more than one fits. */
static int position(const struct sim_state *state, const char *item, size_t length, int count,
                    const int *cards) {
    if (!length) return -1;
    if (strspn(item, "0123456789") >= length && length < 4) {
        int number = atoi(item);
        return number < count ? number : -1;
    }
    if (strncmp(item, "GPU-", length < 4 ? length : 4) != 0) return -1;
    int found = -1;
    for (int i = 0; i < count; i++) {
        if (strncmp(state->cards[cards[i]].fixed.uuid, item, length) != 0) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}

int visible_in_container(const struct sim_state *state, const char *list, int count, int *cards) {
    int all[MAX_CARDS];
    bool wanted[MAX_CARDS] = {false};
    for (int i = 0; i < count; i++) all[i] = i;
    bool everything = !list || strcmp(list, "all") == 0;
    for (const char *item = everything ? NULL : list; item;) {
        item = skip_blanks(item);
        int card = position(state, item, item_length(item), count, all);
        if (card >= 0) wanted[card] = true;
        item = strchr(item, ',');
        if (item) item++;
    }
    int seen = 0;
    for (int i = 0; i < count; i++)
        if (everything || wanted[i]) cards[seen++] = i;
    return seen;
}

int visible_to_cuda(const struct sim_state *state, const char *list, int count, int *cards) {
    if (!list) return count;
    int chosen[MAX_CARDS], seen = 0;
    for (const char *item = list; item && seen < MAX_CARDS;) {
        item = skip_blanks(item);
        int card = position(state, item, item_length(item), count, cards);
        if (card < 0) break;
        bool is_repeated = false;
        for (int i = 0; i < seen; i++) is_repeated |= chosen[i] == cards[card];
        if (is_repeated) return 0; /* as the real driver does */
        chosen[seen++] = cards[card];
        item = strchr(item, ',');
        if (item) item++;
    }
    memcpy(cards, chosen, sizeof *cards * (size_t)seen);
    return seen;
}
