/* deal.c - shuffle sharding: each flow has a hand of queues, and two flows seldom have the same.
 * The hash is read as a number whose digits have the bases deck, deck - 1, ...: the i-th digit
 * chooses among the cards that are left, so every hand is as likely as any other. */
#include "flow_int.h"

void vg_flow_deal(uint64_t hash, uint32_t deck, uint32_t hand, uint32_t cards[VG_FLOW_HAND_MAX])
{
    assert(hand >= 1 && hand <= deck && hand <= VG_FLOW_HAND_MAX);
    uint32_t sorted[VG_FLOW_HAND_MAX]; /* those dealt so far, rising */
    for (uint32_t i = 0; i < hand; i++) {
        uint32_t card = (uint32_t)(hash % (deck - i));
        hash /= deck - i;
        uint32_t at = 0;
        for (; at < i && sorted[at] <= card; at++)
            card++; /* the card-th of those that are left */
        for (uint32_t k = i; k > at; k--)
            sorted[k] = sorted[k - 1];
        sorted[at] = card;
        cards[i] = card;
    }
}
