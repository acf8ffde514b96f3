/* world.h - a cluster in one process: simulated time, hosts, links, workers and faults.
 *
 * Everything that happens is an event with a time; events are taken from a queue in their order.
 * Random numbers come from the seed alone, so a seed replays exactly. Hosts run the real ls_views,
 * bound to simulated connections (link.c), crews (host.c) and stores (store.c); their workers are
 * toys (worker.c) that train blocks of one number each over the fake transport. The holder of a
 * simulated lease leads, or host 0 for ever (member.c).
 *
 * What must hold is listed in check.h.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "cluster/views.h"
#include "net/fake.h"

enum {
    MOST_HOSTS = 6,
    MOST_WORKERS = 10, /* in a view */
    MOST_VIRTUAL = 8,
    MOST_BLOCKS = 6,
    MOST_STEPS = 30,
    MOST_CONNS = 64,
    MOST_VIEWS = 16, /* views that have workers at one time */
    MS = 1000 * 1000 /* ns */
};

typedef struct world world;
typedef struct host host;

/* ---- events ---- */

typedef struct event {
    int64_t at;
    uint64_t order; /* a number that grows; decides between events of the same time */
    /* The host that the event is for, and which life of it: if that has died, the event is dropped.
     * NULL: the world. supervisor: the event waits while the host's supervisor is stopped. */
    host *host;
    int life;
    bool supervisor;
    void (*run)(world *, host *, const struct event *);
    int a, b;
    int64_t number;
} event;

/* ---- the run directory, on a disk that all hosts share ---- */

typedef struct folder {
    ls_view_id owner; /* the view whose worker 0 took it last */
    int nlines;
    struct {
        int64_t step;
        ls_view_id view;
    } lines[4 * MOST_STEPS];
    int64_t saved; /* steps of the newest checkpoint; -1: none */
    uint64_t blocks[MOST_BLOCKS];
} folder;

/* ---- the state that a host retains ---- */

typedef struct block {
    int64_t mark; /* steps applied to it; -1: the block is not there */
    uint64_t value;
} block;

typedef struct store {
    block areas[MOST_WORKERS][MOST_BLOCKS]; /* if sharded, only the first area */
    struct {
        int64_t step; /* from 1; 0: nothing */
        uint64_t sum;
    } grads[MOST_WORKERS][MOST_BLOCKS];
    ls_store_note notes[MOST_WORKERS]; /* the workers' notes in the latest view */
    ls_store_note last;                /* the note of the latest complete step, if known */
    int64_t steps;                     /* complete; -1: no state */
} store;

/* ---- a view's workers ---- */

typedef enum phase {
    PHASE_NONE, /* not started, or dead */
    PHASE_STARTS,
    PHASE_HAVE,    /* which worker has which blocks? */
    PHASE_TAKE,    /* blocks for the workers that lack them */
    PHASE_READY,   /* all workers have their blocks */
    PHASE_COMPUTE, /* gradients */
    PHASE_GRADS,   /* gradients to the owners of the blocks */
    PHASE_NORM,    /* the norm to all; then the step is decided */
    PHASE_UPDATE,
    PHASE_COLLECT, /* blocks to worker 0, which writes a checkpoint */
    PHASE_BYE,     /* all have ended well */
    PHASE_ENDED
} phase;

enum { MESSAGE_WORDS = MOST_VIRTUAL * MOST_BLOCKS };

typedef struct worker {
    phase phase;
    int64_t start, steps; /* start: when the view began; steps: complete */
    int pending;          /* messages of the exchange that are not complete */
    int asked;            /* by the supervisor */
    bool renews;          /* all have agreed to end after this step */
    uint64_t calls;       /* exchanges so far */
    int at;               /* the next block to update */
    int64_t moved_ns, stopped_until;
    ls_message in[MOST_WORKERS], out[MOST_WORKERS];
    uint64_t in_words[MOST_WORKERS][MESSAGE_WORDS], out_words[MOST_WORKERS][MESSAGE_WORDS];
} worker;

typedef struct team {
    ls_view_id id;
    int size, crews; /* crews: number of hosts that run it now; 0: unused */
    int64_t steps;
    ls_fake *net;
    int64_t pump_at; /* -1: none is due */
    int generation;
    host *hosts[MOST_WORKERS]; /* by rank; NULL: the host has not begun */
    worker *workers;           /* [size] */
} team;

/* ---- hosts ---- */

typedef enum crew_state { CREW_NONE, CREW_RUNS, CREW_REPAIRS } crew_state;

typedef struct crew {
    crew_state state;
    int generation;
    bool ends; /* it is about to be killed */
    ls_view_end how;
    ls_view view; /* the latest */
    team *team;
    int blames;             /* LS_BLAMES_..., if it ends badly */
    bool unfinished, whole; /* whole: the workers took up the state */
    bool has_note;          /* the repairer has a step to finish: */
    ls_store_note note;
} crew;

struct host {
    world *w;
    int slot, life;
    bool alive, leaves, has_left, over;
    ls_view_end over_how;
    uint64_t id;
    ls_views *views;
    store store;
    crew crew;
    int nworkers;
    int64_t stopped_until;
    ls_view_id before; /* the view before the latest */
    ls_view_id from;   /* the latest view whose whole state it took up */
    /* the leader, as far as this host knows */
    int64_t term;
    int holder;
    int64_t own_until;    /* it holds the lease until then, by its own clock */
    bool gave_up;         /* it no longer leads this term */
    int64_t linked_since; /* -1: it has no connection to the leader */
    int64_t faulty_until; /* end of its latest fault: it was stopped, or a link of it was cut */
};

typedef struct queued {
    ls_host_message s;
    struct queued *next;
} queued;

/* A connection; side 0 is the host that opened it, side 1 the leader. */
typedef struct conn {
    bool used, open[2];
    host *ends[2];
    int lives[2];
    int peer;     /* the leader's number for it */
    int64_t term; /* the term for which it was opened */
    int generation;
    queued *first[2]; /* in flight to that side; what 0: the other side has closed */
    int64_t last[2];
} conn;

/* ---- the world ---- */

typedef struct plan {
    bool elected, sharded;
    bool closes_at_once; /* hosts close the connection to a leader that no longer leads */
    bool hasty;          /* leaders change often, and hardly wait for hosts */
    bool same_id;        /* a host that comes back has the same number */
    int nhosts, V, B;
    int64_t steps, save_every;
    int64_t ttl, silence, gather, heartbeat, patience, retry; /* ns */
    int nfaults;
    int64_t spacing; /* between faults, in events */
} plan;

typedef struct options {
    bool trace, no_fence, cuts_log;
} options;

typedef struct tally {
    int64_t events, views, terms, decided, replayed, faults, fallbacks, overlaps, refused, outs,
        opened, seeds;
} tally;

struct world {
    uint64_t seed, draws, spare;
    bool has_spare;
    options opt;
    plan plan;
    tally *tally;
    int64_t now, calm_since; /* calm_since: when the last fault was over; -1: not yet */
    uint64_t order;
    int nevents, events_cap;
    event *events; /* a heap */
    host hosts[MOST_HOSTS];
    conn conns[MOST_CONNS];
    team teams[MOST_VIEWS];
    /* Cut links between supervisors (each pair is there twice), from the workers of one host to
     * those of another one, and to the store of the lease. */
    bool cut[MOST_HOSTS][MOST_HOSTS], worker_cut[MOST_HOSTS][MOST_HOSTS], store_cut[MOST_HOSTS];
    int idle_views; /* that have begun since the last decided step, fault, or new leader */
    folder folder;
    struct {
        int64_t term, until;
        int holder, life; /* holder -1: no host */
    } lease;
    uint64_t values[MOST_STEPS + 1][MOST_BLOCKS]; /* the reference */
    uint64_t sums[MOST_STEPS + 1][MOST_BLOCKS];   /* gradients, summed, of each step from 1 */
    /* whole: the latest view whose workers took up the whole state; stateless: the latest that
     * found none. holders: the life that each host had in `whole`; -1: it was not in it. */
    ls_view_id whole, stateless;
    int holders[MOST_HOSTS];
    int64_t led_term; /* the latest term that a host led */
    int64_t count,
        fault_at; /* count: events so far; fault_at: the event before which a fault comes */
    int decides, decides_at, faults_left, crashes_left, keeper;
    unsigned kinds;    /* kinds of faults that may come */
    int64_t calm_at;   /* when all faults so far are over */
    bool done, doomed; /* doomed: the leader is fixed, and lost */
    char violated[512];
};

/* ---- world.c ---- */

void world_run(world *, uint64_t seed, const options *, tally *);
void world_free(world *);
uint64_t draw(world *);
int64_t draw_to(world *, int64_t end); /* 0 to end - 1 */
int64_t draw_in(world *, int64_t first, int64_t last);
bool chance(world *, double share);
uint64_t mix(uint64_t a, uint64_t b, uint64_t c);
uint64_t gradient(int64_t step, int virtual_worker, int block);
uint64_t updated(uint64_t value, uint64_t sum, int64_t step);

/* An event after `after` ns; a supervisor's waits while that is stopped. The caller fills in the
 * rest. */
event *post(world *, int64_t after, void (*run)(world *, host *, const event *));
event *post_host(host *, int64_t after, void (*run)(world *, host *, const event *));
void trace(world *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void violate(world *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Views are ordered by term, then by number. */
int view_compare(ls_view_id, ls_view_id);

/* ---- host.c ---- */

void host_start(world *, int slot);
void host_kill(host *, bool quietly);
void crew_fail(host *, ls_view_end how, const char *why);
/* A worker fails since another one is lost; blames: LS_BLAMES_... */
void crew_blame(host *, int blames);
void crew_worker_ended(host *);
void crew_repairer_killed(host *);
int crew_place(const host *, int rank); /* the worker's number on its host */

/* ---- store.c ---- */

void store_clear(store *);
/* The worker's place for a block. */
block *store_block(const world *, store *, int local, int b);
/* Sets a block to its value after `mark` steps. */
void store_put(host *, block *, int b, int64_t mark, uint64_t value);
/* The block after `steps` steps, in any area; NULL: none has it. */
const block *store_find(const world *, const store *, int b, int64_t steps);
bool owns(const world *, int rank, int size, int b);
bool store_note(const store *, ls_store_note *note_p);
void repairer_start(host *);

/* ---- team.c ---- */

/* The team of a view; created if the view has no workers yet. */
team *team_find(world *, const ls_view *);
/* The host's workers are dead. */
void team_leave(team *, host *);
void worker_start(team *, int rank);
void worker_stop(team *, int rank, int64_t ns);
void worker_kill(team *, int rank);
/* The worker ends with an error, which its supervisor gets. */
void worker_fail(team *, int rank, ls_view_end how, const char *why);
/* The same, for it has lost another one. */
void worker_blame(team *, int rank, int blames, const char *why);
/* Holds messages on links that are cut now. */
void teams_hold(world *);
/* Workers of two hosts lose their connections. */
void teams_cut(world *, int a, int b);

/* An event of a worker. Its function gets the team by worker_team(); NULL: the worker is dead, or
 * it is stopped, and the event comes again later. */
void worker_later(team *, int rank, int64_t after, void (*run)(world *, host *, const event *));
team *worker_team(world *, const event *);
/* Exchanges out_words for in_words; gather: only with worker 0. worker_completed() follows. */
void worker_exchange(team *, int rank, phase, size_t nwords, bool gather);

/* ---- worker.c ---- */

void worker_started(world *, host *, const event *);
void worker_completed(world *, host *, const event *);

/* ---- folder.c ---- */

/* Worker 0 takes the run directory when a view begins; false: a later view has it. */
bool folder_take(host *, ls_view_id, int64_t steps);
bool folder_append(world *, ls_view_id, int64_t step);
bool folder_save(world *, ls_view_id, int64_t steps, const uint64_t *blocks);

/* ---- link.c ---- */

void link_send(host *, int peer, const ls_host_message *);
void link_drop(host *, int peer);
void link_new_leader(host *);
void link_connect_soon(host *);
void link_host_died(host *, bool quietly);
void link_break(world *, int a, int b);
void link_free(world *);

/* ---- member.c ---- */

void member_start(host *);
/* The host checks its clock: it may have to stop leading. */
void member_look(host *);

/* ---- faults.c ---- */

void faults_plan(world *);
void faults_event(world *); /* before each event */

#endif
