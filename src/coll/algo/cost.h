/* cost.h - what a call takes: messages, bytes sent, bytes added, and the time for all of them.
 *
 * Two bounds, as for any work that several share (Brent, "The parallel evaluation of general
 * arithmetic expressions", J. ACM 21 (1974) 201-206):
 *
 *   chain   messages that wait for each other cost a latency each, their bytes the bandwidth of a
 *           link, sums the speed of adding: Hockney's model ("The communication challenge for MPP",
 *           Parallel Computing 20 (1994) 389-398), as Thakur et al. (2005) use it
 *   work    where all workers send at once, through the same links or by the same few cores, each
 *           message and byte costs what it costs then
 *
 * On a network the chain decides, among processes of one host the work.
 *
 * Each algorithm counts its own calls (the field `cost` of ls_algorithm);
 * docs/design/collectives.md has the counts in one table.
 */
#ifndef LS_COLL_ALGO_COST_H
#define LS_COLL_ALGO_COST_H

/* What a call takes. */
typedef struct ls_cost {
    double chain_messages, chain_sent, chain_added; /* the longest chain; sent and added: bytes */
    double messages, sent, added;                   /* a worker, on average over all */
} ls_cost;

/* The speeds of the links between workers, in five numbers (coll/link.h measures them). */
typedef struct ls_link {
    double latency_s; /* from the sending of a short message to its receipt: between that of one
                       * alone and that when all send (their geometric mean) */
    double byte_s;    /* of a long message, one way, when nothing else moves */
    /* What a worker needs for each message and byte that it sends, and each byte that it adds, when
     * all workers do so at once, and share links, cores and memory. */
    double busy_message_s, busy_byte_s, reduce_s;
} ls_link;

/* Hosts with the same number of workers each, which share their host's network card. */
typedef struct ls_hosts {
    int nworkers, host_workers;
    ls_link inside;                     /* between workers of a host; the network is no faster */
    double card_latency_s, card_byte_s; /* of the card, where there are several hosts */
} ls_hosts;

/* The link between two workers of different hosts, where the bytes that a worker sends go through
 * its host's card `load` times. With one host: the link inside it. */
ls_link ls_hosts_link(const ls_hosts *, double load);

/* Predicted seconds: of the chain, when nothing else moves; of the work, when all work at once; and
 * of the call, which takes the longer of the two and some of the other. */
double ls_cost_chain_seconds(const ls_cost *, const ls_link *);
double ls_cost_work_seconds(const ls_cost *, const ls_link *);
double ls_cost_seconds(const ls_cost *, const ls_link *);

/* ---- for algorithms ---- */

double ls_ceil_log2(int n);
double ls_floor_log2(int n);

/* The cost of an algorithm in which all n workers do equal work, so that each worker's own work is
 * the chain. Further messages of a worker wait for the ones before, but not for their receivers:
 * each of these costs a tenth. */
typedef struct ls_even_cost {
    double steps, further; /* messages of the chain, and those that wait for no receiver */
    double messages, sent, added;
} ls_even_cost;
ls_cost ls_cost_even(ls_even_cost);

/* A tree over n workers that carries `nbytes` along each edge, and adds `added`; `ways`: 1 up or
 * down, 2 both. */
ls_cost ls_cost_tree(double nbytes, int n, int ways, double added);

#endif
