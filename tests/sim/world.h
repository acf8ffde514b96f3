/* world.h - a cluster in one process: simulated time, hosts, links, workers and faults.
 *
 * Everything that happens is an event with a time; one after the other is taken from a queue. What
 * is random comes from the seed alone, so a seed replays exactly. Hosts run the real ls_views,
 * bound to simulated connections (link.c), crews (host.c) and stores (store.c); their workers are
 * toys (worker.c) that train blocks of one number each over the fake transport. Who leads is known
 * from a simulated lease, or is host 0 for ever (member.c).
 *
 * What must hold is listed in check.h.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "cluster/views.h"
#include "net/fake.h"

enum {
    MOST_HOSTS = 6,
    MOST_WORKERS = 10, /* of a view */
    MOST_VIRTUAL = 8,
    MOST_BLOCKS = 6,
    MOST_STEPS = 30,
    MOST_CONNS = 64,
    MOST_VIEWS = 16, /* that have workers at one time */
    MS = 1000 * 1000 /* ns */
};

typedef struct world world;
typedef struct host host;

/* ---- events ---- */

typedef struct event {
    int64_t at;
    uint64_t order; /* of those at one time, and of all */
    /* Whose it is; a host that has died since has no events. supervisor: it waits while that is
     * stopped. NULL: the world's. */
    host *host;
    int life;
    bool supervisor;
    void (*run)(world *, host *, const struct event *);
    int a, b;
    int64_t number;
} event;

/* ---- the run's folder, on a disk that all hosts share ---- */

typedef struct folder {
    ls_view_id owner; /* whose worker 0 took it last */
    int nlines;
    struct {
        int64_t step;
        ls_view_id view;
    } lines[4 * MOST_STEPS];
    int64_t saved; /* steps of the newest checkpoint; -1: none */
    uint64_t blocks[MOST_BLOCKS];
} folder;

/* ---- what a host keeps ---- */

typedef struct block {
    int64_t mark; /* steps that it has had; -1: nothing is there */
    uint64_t value;
} block;

typedef struct store {
    block areas[MOST_WORKERS][MOST_BLOCKS]; /* sharded: only the first */
    struct {
        int64_t step; /* from 1; 0: nothing */
        uint64_t sum;
    } grads[MOST_WORKERS][MOST_BLOCKS];
    ls_store_note notes[MOST_WORKERS]; /* of the latest view */
    ls_store_note last;                /* of the latest complete step, if known */
    int64_t steps;                     /* complete; -1: no state */
} store;

/* ---- a view's workers ---- */

typedef enum phase {
    PHASE_NONE, /* not started, or dead */
    PHASE_STARTS,
    PHASE_HAVE,    /* who has which blocks? */
    PHASE_TAKE,    /* those that are lacking */
    PHASE_READY,   /* all have all */
    PHASE_COMPUTE, /* gradients */
    PHASE_GRADS,   /* to those who own them */
    PHASE_TELL,    /* the norm; then the step is decided */
    PHASE_UPDATE,
    PHASE_COLLECT, /* blocks to worker 0, which writes a checkpoint */
    PHASE_BYE,     /* all have ended well */
    PHASE_ENDED
} phase;

enum { MESSAGE_WORDS = MOST_VIRTUAL * MOST_BLOCKS };

typedef struct worker {
    phase phase;
    int64_t start, steps; /* at the view's beginning; complete */
    int pending;          /* messages of the exchange */
    int asked;            /* by the supervisor */
    bool renews;          /* all have agreed to */
    uint64_t calls;       /* exchanges so far */
    int at;               /* the block that is updated next */
    int64_t moved_ns, stopped_until;
    ls_message in[MOST_WORKERS], out[MOST_WORKERS];
    uint64_t in_words[MOST_WORKERS][MESSAGE_WORDS], out_words[MOST_WORKERS][MESSAGE_WORDS];
} worker;

typedef struct team {
    ls_view_id id;
    int size, crews; /* crews: hosts that run it now; 0: unused */
    int64_t steps;
    ls_fake *net;
    int64_t pump_at; /* -1: none is due */
    int generation;
    host *hosts[MOST_WORKERS]; /* by rank; NULL: not begun */
    worker *workers;           /* [size] */
} team;

/* ---- hosts ---- */

typedef enum crew_state { CREW_NONE, CREW_RUNS, CREW_MENDS } crew_state;

typedef struct crew {
    crew_state state;
    int generation;
    bool ends, told; /* it is about to be killed; the leader has told so */
    ls_view_end how;
    ls_view view; /* the latest */
    team *team;
    bool unfinished, whole; /* whole: they took up the state */
    bool has_note;          /* the mender's */
    ls_store_note note;     /* the mender's */
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
    ls_view_id from;   /* the latest whose state it took up, and knows it */
    /* who leads, as far as it knows */
    int64_t term;
    int holder;
    int64_t own_until;    /* by its own clock it holds the lease until then */
    bool gave_up;         /* this term */
    int64_t linked_since; /* -1: it has no connection to the leader */
    int64_t hurt_until;   /* it, or one of its links, is stopped or cut until then, or was */
};

typedef struct words {
    ls_host_message s;
    struct words *next;
} words;

/* A connection; side 0 is the host's that has made it, side 1 the leader's. */
typedef struct conn {
    bool used, open[2];
    host *ends[2];
    int lives[2];
    int peer;     /* the leader's number for it */
    int64_t term; /* for which it was made */
    int generation;
    words *first[2]; /* on the way to that side; what 0: the other has closed */
    int64_t last[2];
} conn;

/* ---- the world ---- */

typedef struct plan {
    bool elected, sharded;
    bool closes_at_once; /* hosts close the connection to a leader that leads no more */
    bool hasty;          /* leaders change often, and hardly wait for others */
    bool same_id;        /* a host that comes back has the same number */
    int nhosts, V, B;
    int64_t steps, save_every;
    int64_t ttl, silence, gather, heartbeat, patience; /* ns */
    int nfaults;
    int64_t spacing; /* of faults, in events */
} plan;

typedef struct options {
    bool trace, no_fence, cuts_log;
} options;

typedef struct tally {
    int64_t events, views, terms, decided, replayed, faults, fallbacks, overlaps, refused, seeds;
} tally;

struct world {
    uint64_t seed, draws, spare;
    bool has_spare;
    options opt;
    plan plan;
    tally *tally;
    int64_t now, calm_since; /* calm_since: faults have ceased; -1: not yet */
    uint64_t order;
    int nevents, events_cap;
    event *events; /* a heap */
    host hosts[MOST_HOSTS];
    conn conns[MOST_CONNS];
    team teams[MOST_VIEWS];
    /* Links between supervisors, between workers, and to the store of the lease; a pair twice. */
    bool cut[MOST_HOSTS][MOST_HOSTS], worker_cut[MOST_HOSTS][MOST_HOSTS], store_cut[MOST_HOSTS];
    folder folder;
    struct {
        int64_t term, until;
        int holder, life; /* holder -1: nobody */
    } lease;
    uint64_t values[MOST_STEPS + 1][MOST_BLOCKS]; /* the reference */
    uint64_t sums[MOST_STEPS + 1][MOST_BLOCKS];   /* of gradients of step 1 and on */
    /* The latest view whose workers took up the whole state, and its hosts' lives; -1: no host. */
    ls_view_id whole, stateless; /* stateless: the latest that found none */
    int holders[MOST_HOSTS];
    int64_t led_term;        /* the latest that a host led */
    int64_t count, fault_at; /* events; that before which the next fault is */
    int decides, decides_at, faults_left, crashes_left, keeper;
    unsigned kinds;    /* of faults */
    int64_t calm_at;   /* all that was hurt so far has healed */
    bool done, doomed; /* doomed: the leader for ever is lost */
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

/* To happen `after` ns; supervisors' events wait while these are stopped. Change the result. */
event *post(world *, int64_t after, void (*run)(world *, host *, const event *));
event *post_host(host *, int64_t after, void (*run)(world *, host *, const event *));
void tell(world *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void violate(world *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The order of views: by term, then number. */
int view_compare(ls_view_id, ls_view_id);

/* ---- host.c ---- */

void host_start(world *, int slot);
void host_kill(host *, bool quietly);
void crew_fail(host *, ls_view_end how, const char *why);
void crew_worker_ended(host *);
void crew_mender_killed(host *);
int crew_place(const host *, int rank); /* the number on its host */

/* ---- store.c ---- */

void store_clear(store *);
/* Where the worker has a block. */
block *store_block(const world *, store *, int local, int b);
/* A block becomes what it is after `mark` steps. */
void store_put(host *, block *, int b, int64_t mark, uint64_t value);
/* Has any area the block after so many steps? */
const block *store_find(const world *, const store *, int b, int64_t steps);
bool owns(const world *, int rank, int size, int b);
bool store_note(const store *, ls_store_note *note_p);
void mender_start(host *);

/* ---- team.c ---- */

/* That of the view; made where it has no workers yet. */
team *team_find(world *, const ls_view *);
/* The host's workers live no more. */
void team_leave(team *, host *);
void worker_start(team *, int rank);
void worker_stop(team *, int rank, int64_t ns);
void worker_kill(team *, int rank);
/* It ends with an error, of which its supervisor hears. */
void worker_fail(team *, int rank, ls_view_end how, const char *why);
/* Messages wait where links are cut now. */
void teams_hold(world *);
/* Workers of two hosts lose their connections. */
void teams_cut(world *, int a, int b);

/* To happen to a worker. The event's function gets its team, or NULL: the worker lives no more, or
 * is stopped, and it will happen later. */
void worker_later(team *, int rank, int64_t after, void (*run)(world *, host *, const event *));
team *worker_team(world *, const event *);
/* Of in_words and out_words; gather: to worker 0 alone. worker_completed() follows. */
void worker_exchange(team *, int rank, phase, size_t nwords, bool gather);

/* ---- worker.c ---- */

void worker_started(world *, host *, const event *);
void worker_completed(world *, host *, const event *);

/* ---- folder.c ---- */

/* By worker 0 of a view, at its beginning; false: a later view has the folder. */
bool folder_take(host *, ls_view_id, int64_t steps);
bool folder_append(world *, ls_view_id, int64_t step);
bool folder_save(world *, ls_view_id, int64_t steps, const uint64_t *blocks);

/* ---- link.c ---- */

void link_say(host *, int peer, const ls_host_message *);
void link_drop(host *, int peer);
void link_new_leader(host *);
void link_connect_soon(host *);
void link_host_died(host *, bool quietly);
void link_break(world *, int a, int b);
void link_free(world *);

/* ---- member.c ---- */

void member_start(host *);
/* The host looks at its clock; it may have led for too long. */
void member_look(host *);

/* ---- faults.c ---- */

void faults_plan(world *);
void faults_event(world *); /* before each event */

#endif
