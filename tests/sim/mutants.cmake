# mutants.cmake - bugs that are planted in copies of views.c and leader.c, to test the simulation: a
# seed must find each of them.
#
# Included by tests/CMakeLists.txt, which builds one simulation per mutant. Run as a script, it
# writes one copy, and fails unless the source has the line to be changed exactly once:
#
#     cmake -D NAME=own_note -D SOURCES=src/cluster -D OUT=FILE -P tests/sim/mutants.cmake

set(MUTANTS own_note begin_early unfinished no_gather stale_term most_steps number_only no_cuts)

# A host finishes only the step that it has noted itself.
set(own_note_file leader.c)
set(own_note_line "if (p->phase == LS_PEER_ABSENT || !ls_view_same(p->state.view, of->state.view)) continue;")
set(own_note_becomes "if (p->phase == LS_PEER_ABSENT || p != of) continue;")

# A view begins while a host still finishes a step.
set(begin_early_file leader.c)
set(begin_early_line "if (any(v, LS_PEER_FINISHES)) return;")
set(begin_early_becomes "")

# A host that lost the leader counts as finished.
set(unfinished_file views.c)
set(unfinished_line "v->nworkers = n;")
set(unfinished_becomes "v->nworkers = n; v->state.unfinished = v->joined;")

# A new leader does not wait for the hosts that have the state.
set(no_gather_file leader.c)
set(no_gather_line "if (!first || v->now - v->leader.since_ns >= v->c.gather_ns) return true;")
set(no_gather_becomes "if (first || v) return true;")

# Messages of another term are accepted.
set(stale_term_file views.c)
set(stale_term_line "if (s->term != v->term) return;")
set(stale_term_becomes "")

# The state with the most steps wins, even that of a host that was left behind.
set(most_steps_file leader.c)
set(most_steps_line "if (a->from.term != b->from.term) return a->from.term > b->from.term;
    if (a->from.number != b->from.number) return a->from.number > b->from.number;")
set(most_steps_becomes "")

# Views are distinguished by their number, without the term.
set(number_only_file views.c)
set(number_only_line "return a.term == b.term && a.number == b.number;")
set(number_only_becomes "return a.number == b.number;")

# The leader does not learn which hosts are cut from each other.
set(no_cuts_file leader.c)
set(no_cuts_line "if (blamed < 0 || blamed == i) continue;")
set(no_cuts_becomes "if (blamed < 0 || v) continue;")

if(CMAKE_SCRIPT_MODE_FILE)
    file(READ "${SOURCES}/${${NAME}_file}" text)
    string(FIND "${text}" "${${NAME}_line}" first)
    string(FIND "${text}" "${${NAME}_line}" last REVERSE)
    if(first EQUAL -1 OR NOT first EQUAL last)
        message(FATAL_ERROR "mutant ${NAME}: ${${NAME}_file} must have this exactly once: ${${NAME}_line}")
    endif()
    string(REPLACE "${${NAME}_line}" "${${NAME}_becomes}" text "${text}")
    file(WRITE "${OUT}" "${text}")
endif()
