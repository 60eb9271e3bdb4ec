/*
 * The life of one task, as several workers of several replicas lead it on one database: a model for
 * the checker spin. docs/architecture.md, "The model of a task's life", says what it shows and how it
 * is run. Whoever changes src/task/transitions.c, src/store/vote_operations.c, the claim
 * and the outcome in src/gateway/conversation/, or src/store/replica*.c changes this file.
 *
 * Each `atomic` is a transaction, a step of a worker, or a step of the world. Replica 0 has the
 * workers 0 and 1, replica 1 has worker 2. Each worker holds credentials of its own. Time is
 * not counted: what may happen late may happen at any moment.
 *
 * Faults, so many of each in a run: LOSSES are commits that are done and whose answer is lost for
 * longer than the callers wait (UNSURE_PATIENCE_MS); FAILS are commits that are not done; STOPS are
 * pauses or crashes of a replica, each of which may be for ever, but not of both replicas.
 *
 * Planted mistakes, each by a macro of this name; tests/faults/model.test.mjs finds every one:
 *
 * - CLAIM_UNCOMPARED: the claim does not look whether the task is still approved
 * - OUTCOME_UNCOMPARED: the outcome does not look whether the task is still executing
 * - CLAIM_UNNAMED: an outcome does not say of which claim it is, only of which replica and epoch
 * - LOST_IS_APPROVED: the call of a replica that is gone is approved again
 * - PLAIN_UNJUDGED: the rules are not asked again behind the commit of a plain claim
 * - BEHIND_UNJUDGED: the same of a claim behind a vote
 * - EDIT_BY_ANY_VOTE: a vote may change the arguments although it does not fill a place
 * - EDIT_KEEPS_VOTES: votes on the arguments before stand
 * - VOTE_OF_ANYBODY: a vote counts whatever group its person is in
 * - OWN_FEED_SKIPPED: a replica passes over its own changes in the feed
 * - EPOCH_STAYS: a replica keeps its epoch after a commit whose answer came too late
 * - FENCE_ENDS_NOTHING: a fenced replica's calls are not ended
 * - OUTCOME_ONCE: an outcome that could not be stored is not tried again
 */
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef FAILS
#define FAILS 1
#endif
#ifndef STOPS
#define STOPS 1
#endif
/* 1: one of the group; persons may edit. 2: any two persons. */
#ifndef QUORUM
#define QUORUM 1
#endif

/* 1: an approval by one alone. 3: also votes that do not decide, edits, withdrawals. */
#ifndef PERSONS
#define PERSONS 3
#endif

#define WORKERS 3
#define REPLICAS 2
#define MOST_TRIES 3
#define NOBODY 9

#define REPLICA_OF(w) ((w) / 2)

/* ---- the database ---- */

#define PENDING 0
#define APPROVED 1
#define EXECUTING 2
#define COMPLETED 3
#define FAILED 4
#define REJECTED 5
#define CANCELLED 6
#define EXPIRED 7
#define IS_FINAL(s) ((s) >= COMPLETED)
/* The table of src/task/transitions.c. */
#define CAN_MOVE(from, to)                                                                         \
    (((from) == PENDING && (to) != EXECUTING && (to) != COMPLETED) ||                              \
     ((from) == APPROVED && (to) != PENDING && (to) != COMPLETED && (to) != REJECTED) ||           \
     ((from) == EXECUTING && ((to) == COMPLETED || (to) == FAILED || (to) == CANCELLED ||          \
                              (to) == APPROVED)))

byte state = PENDING;
bit digest = 0;     /* of the arguments; 1: edited */
byte refused = 0;   /* the credentials that the server has refused, a bit of each worker's */
byte refusals = 0;  /* how many tries: the number of the next claim */
byte claimed_by = 0, claim_epoch = 0;
byte epoch[REPLICAS] = 1; /* as the database has them */
bool lives[REPLICAS] = true;
byte voted = 0; /* a bit of each person who has approved */

/* ---- the replicas ---- */

byte own_epoch[REPLICAS] = 1; /* as they know it; 0: none */
bool is_unsure[REPLICAS];     /* an answer was lost, and is not looked up yet */
bool is_late[REPLICAS];       /* it was looked up, and nobody waits for it any more */
bool is_unseen[REPLICAS];     /* the feed has a change that the workers were not told of */
bool is_stopped[REPLICAS], is_crashed[REPLICAS], is_for_ever[REPLICAS];
bool is_answered[REPLICAS]; /* of each replica: the client that waits there for the end */
bool is_waiting[REPLICAS] = true;

#define RUNS(r) (!is_stopped[r])

/* ---- the workers ---- */

mtype = {offered, checking, refusing, claiming, committing, committed, running, storing, ended};
mtype where[WORKERS] = offered;
byte claim_of[WORKERS];  /* the number of its claim */
bool is_behind[WORKERS]; /* it is a claim behind a vote */
byte outcome[WORKERS];   /* the state that its outcome leads to */

/* ---- the world ---- */

bit may_run = 1;  /* the rules in force allow the call */
byte group = 1;   /* a bit of each person of the group of the quorum */
byte losses = 0, fails = 0, stops = 0;

/* ---- what is to hold ---- */

byte executions = 0;       /* of the call, by the server */
bool was_allowed[WORKERS]; /* by the rules in force when `executing` was committed */
bit voted_digest[3]; /* the arguments that each has approved */

/* Whatever does not matter any more is forgotten, so that equal states are one. */
inline move(to)
{
    assert(CAN_MOVE(state, to)); /* final states stay */
    state = to;
    if
    :: to != APPROVED -> voted = 0; group = 1; digest = 0; voted_digest[0] = 0; voted_digest[1] = 0; voted_digest[2] = 0
    :: else
    fi;
    if
    :: to != EXECUTING -> claimed_by = 0; claim_epoch = 0
    :: else
    fi
}

inline leave(w)
{
    where[w] = ended;
    claim_of[w] = 0;
    was_allowed[w] = false;
    is_behind[w] = false;
    outcome[w] = 0
}

#define HAS_VOTED(p) ((voted >> (p)) & 1)
#define COUNTS(p) (HAS_VOTED(p) && (QUORUM == 2 || ((group >> (p)) & 1)))
#define COUNTS_ON(p) (COUNTS(p) && voted_digest[p] == digest)
#define STANDS_ON(p) (!HAS_VOTED(p) || voted_digest[p] == digest)
#define VOTES(counts) (counts(0) + counts(1) + counts(2))
#ifdef VOTE_OF_ANYBODY
#define IS_FILLED (VOTES(HAS_VOTED) >= QUORUM)
#else
#define IS_FILLED (VOTES(COUNTS) >= QUORUM)
#endif

/* ---- transactions ---- */

/* The begin of a transaction looks up what became of the commit before. The transaction goes on in
 * the old epoch. */
inline begin(r)
{
    if
    :: is_unsure[r] -> is_unsure[r] = false; is_late[r] = true
    :: else
    fi
}

/* A change is told to this replica's own workers with its answer, to the others by the feed. */
inline tell(r)
{
    if
    :: IS_FINAL(state) && is_waiting[r] -> is_answered[r] = true
    :: else
    fi;
    is_unseen[1 - r] = true
}

inline tell_by_feed(r)
{
    is_unseen[1 - r] = true;
#ifndef OWN_FEED_SKIPPED
    is_unseen[r] = true;
#endif
    is_unsure[r] = true
}

/* Calls whose claim is of no living epoch. */
inline end_lost()
{
#ifndef FENCE_ENDS_NOTHING
    if
    :: state == EXECUTING && (claim_epoch != epoch[claimed_by] || !lives[claimed_by]) ->
#ifdef LOST_IS_APPROVED
        move(APPROVED);
#else
        move(FAILED);
#endif
        is_unseen[0] = true;
        is_unseen[1] = true
    :: else
    fi
#else
    skip
#endif
}

inline claim(w, r)
{
    move(EXECUTING);
    claimed_by = r;
    claim_epoch = own_epoch[r];
    claim_of[w] = refusals;
    was_allowed[w] = may_run
}

#define MAY_CLAIM(w, r) (own_epoch[r] == epoch[r] && lives[r] && !((refused >> (w)) & 1))
#ifdef CLAIM_UNCOMPARED
#define IS_FREE (state == APPROVED || state == EXECUTING)
#else
#define IS_FREE (state == APPROVED)
#endif

/* ---- a worker ---- */

/* The task is to become `executing`. */
inline commit_claim(w, r)
{
    begin(r);
    if
    :: IS_FREE && MAY_CLAIM(w, r) ->
        if
        :: state == EXECUTING -> claimed_by = r; claim_of[w] = refusals; was_allowed[w] = may_run /* planted */
        :: else -> claim(w, r)
        fi;
        if
        :: true -> where[w] = committed; tell(r)
        :: losses < LOSSES -> losses++; where[w] = offered; tell_by_feed(r)
        fi
    :: IS_FREE && MAY_CLAIM(w, r) && fails < FAILS -> fails++; where[w] = offered
    :: IS_FREE && ((refused >> w) & 1) -> leave(w)
    :: IS_FREE && !((refused >> w) & 1) && !MAY_CLAIM(w, r) -> where[w] = offered /* no epoch */
    :: !IS_FREE -> leave(w)
    fi
}

#ifdef CLAIM_UNNAMED
#define IS_OF_CLAIM(w) true
#else
#define IS_OF_CLAIM(w) (claim_of[w] == refusals)
#endif
#ifdef OUTCOME_UNCOMPARED
#define TAKES_OUTCOME(w, r) true
#else
#define TAKES_OUTCOME(w, r)                                                                        \
    (state == EXECUTING && claimed_by == (r) && claim_epoch == own_epoch[r] && IS_OF_CLAIM(w))
#endif

/* What the worker has to say is tried again until it is stored, or too late. */
inline commit_outcome(w, r)
{
    begin(r);
    if
    :: TAKES_OUTCOME(w, r) ->
        move(outcome[w]);
        if
        :: state == APPROVED -> refused = refused | (1 << w); refusals++
        :: else
        fi;
        if
        :: true -> leave(w); tell(r)
        :: losses < LOSSES -> losses++; tell_by_feed(r)
        fi
    :: TAKES_OUTCOME(w, r) && fails < FAILS ->
        fails++;
#ifdef OUTCOME_ONCE
        leave(w)
#else
        skip
#endif
    :: !TAKES_OUTCOME(w, r) -> leave(w) /* late_outcome, or a conflict */
    fi
}

/* Nothing was sent: the refusal is dropped if another worker has begun. */
inline commit_refusal(w, r)
{
    begin(r);
    if
    :: state == APPROVED ->
        move(FAILED);
        if
        :: true -> leave(w); tell(r)
        :: losses < LOSSES -> losses++; tell_by_feed(r)
        fi
    :: state == APPROVED && fails < FAILS -> fails++
    :: state != APPROVED -> leave(w)
    fi
}

/* The claim is on disk, and the rules are asked again. */
inline judge(w)
{
    if
#ifdef PLAIN_UNJUDGED
    :: may_run || !is_behind[w] -> where[w] = running
    :: !may_run && is_behind[w] -> outcome[w] = FAILED; where[w] = storing
#else
#ifdef BEHIND_UNJUDGED
    :: may_run || is_behind[w] -> where[w] = running
    :: !may_run && !is_behind[w] -> outcome[w] = FAILED; where[w] = storing
#else
    :: may_run -> where[w] = running
    :: !may_run -> outcome[w] = FAILED; where[w] = storing
#endif
#endif
    fi
}

inline send(w)
{
    assert(was_allowed[w]);
    was_allowed[w] = false;
    if
    :: refusals + 1 < MOST_TRIES -> outcome[w] = APPROVED /* the server refuses the credentials */
    :: refusals + 1 >= MOST_TRIES -> outcome[w] = FAILED
    :: executions++; outcome[w] = COMPLETED
    :: executions++; outcome[w] = FAILED /* it is silent, or says so */
    fi;
    assert(executions <= 1);
    is_behind[w] = false;
    where[w] = storing
}

proctype worker(byte w; byte r)
{
end:
    do
    :: atomic { RUNS(r) && where[w] == offered && state == APPROVED && !((refused >> w) & 1) -> where[w] = checking }
    :: atomic { RUNS(r) && where[w] == offered && IS_FINAL(state) -> leave(w) }
    :: atomic { RUNS(r) && where[w] == checking ->
        if :: may_run -> is_behind[w] = false; where[w] = committing :: else -> where[w] = refusing fi }
    :: atomic { RUNS(r) && where[w] == refusing -> commit_refusal(w, r) }
    :: atomic { RUNS(r) && where[w] == committing -> commit_claim(w, r) }
    :: atomic { RUNS(r) && where[w] == committed -> judge(w) }
    :: atomic { RUNS(r) && where[w] == running -> send(w) }
    :: atomic { RUNS(r) && where[w] == storing -> commit_outcome(w, r) }
    od
}

/* ---- the store of a replica: epochs, fences, the feed ---- */

/* Claims of an earlier epoch are lost. */
inline join(r)
{
    epoch[r]++;
    lives[r] = true;
    own_epoch[r] = epoch[r];
    is_late[r] = false;
    end_lost()
}

inline read_feed(r)
{
    is_unseen[r] = false;
    if
    :: IS_FINAL(state) && is_waiting[r] -> is_answered[r] = true
    :: else
    fi
}

proctype store(byte r)
{
end:
    do
    :: atomic { RUNS(r) && is_unsure[r] -> begin(r) }
    :: atomic {
        RUNS(r) && is_late[r] ->
#ifdef EPOCH_STAYS
        is_late[r] = false
#else
        join(r)
#endif
    }
    :: atomic { RUNS(r) && !is_late[r] && (own_epoch[r] != epoch[r] || !lives[r]) -> join(r) }
    :: atomic { RUNS(r) && is_stopped[1 - r] && lives[1 - r] -> epoch[1 - r]++; lives[1 - r] = false; end_lost() }
    :: atomic { RUNS(r) && is_unseen[r] -> read_feed(r) }
    :: atomic { /* the client asks again, after a start */
        RUNS(r) && !is_waiting[r] -> is_waiting[r] = true; if :: IS_FINAL(state) -> is_answered[r] = true :: else fi
    }
    :: atomic { is_stopped[r] && !is_for_ever[r] -> is_stopped[r] = false;
        if :: is_crashed[r] -> is_crashed[r] = false; join(r) :: else fi }
    od
}

/* ---- deadlines ---- */

active proctype time()
{
end:
    do
    :: atomic { state == PENDING || state == APPROVED -> move(EXPIRED); is_unseen[0] = true; is_unseen[1] = true }
    od
}

/* ---- a reload, after which the rules refuse the call; or none ---- */

active proctype reload()
{
end:
    atomic { may_run && !IS_FINAL(state) -> if :: may_run = 0 :: skip fi }
}

/* ---- persons, rules, faults: any of it may happen, and nothing must ---- */

#ifdef EDIT_BY_ANY_VOTE
#define MAY_EDIT(p) true
#else
#define MAY_EDIT(p) ((group >> (p)) & 1)
#endif

/* A vote at a replica, with the claim of `w` behind it, if it is not NOBODY, in one commit. */
inline commit_vote(r, p, edits, w)
{
    begin(r);
    if
    :: state == PENDING && !HAS_VOTED(p) && (!edits || MAY_EDIT(p)) ->
#ifndef EDIT_KEEPS_VOTES
#ifndef EDIT_BY_ANY_VOTE
        if :: edits -> voted = 0 :: else fi;
#endif
#endif
        voted = voted | (1 << p);
        voted_digest[p] = (edits -> 1 : digest);
        if
        :: IS_FILLED ->
            digest = (edits -> 1 : digest);
            move(APPROVED);
            assert(VOTES(COUNTS_ON) >= QUORUM);
            assert(STANDS_ON(0) && STANDS_ON(1) && STANDS_ON(2));
            voted = 0; group = 1; digest = 0; voted_digest[0] = 0; voted_digest[1] = 0; voted_digest[2] = 0;
            /* a claim is of the arguments that its worker has looked at */
            if
            :: w != NOBODY && !edits && MAY_CLAIM(w, r) -> claim(w, r)
            :: else
            fi
        :: else
        fi;
        if
        :: losses < LOSSES ->
            losses++;
            tell_by_feed(r);
            if :: w != NOBODY -> where[w] = offered :: else fi
        :: true -> tell(r);
            if
            :: w != NOBODY && state == EXECUTING -> where[w] = committed
            :: w != NOBODY && state != EXECUTING -> where[w] = offered
            :: else
            fi
        fi
    :: else -> if :: w != NOBODY -> where[w] = offered :: else fi
    fi
}

inline choose_person(p)
{
    if :: p = 0 :: PERSONS > 1 -> p = 1 :: PERSONS > 1 -> p = 2 fi
}

active proctype world()
{
    byte p, w = NOBODY;
    bool edits;
    do
    /* A vote of somebody at replica 0, with a claim of a worker that holds what the call needs. */
    :: atomic { RUNS(0) && state == PENDING && may_run && where[0] == offered ->
        w = 0; where[0] = claiming; is_behind[0] = true };
        atomic {
            choose_person(p);
            if
            :: RUNS(0) && where[0] == claiming -> commit_vote(0, p, false, 0)
            :: is_crashed[0] || where[0] != claiming -> skip /* the request is gone */
            fi;
            w = NOBODY; p = 0
        }
    :: atomic {
        RUNS(1) && state == PENDING -> choose_person(p);
        if :: edits = false :: QUORUM == 1 && PERSONS > 1 && digest == 0 -> edits = true fi;
        commit_vote(1, p, edits, NOBODY);
        p = 0; edits = false
    }
    :: atomic { PERSONS > 1 && state == PENDING && voted ->
        choose_person(p); voted = voted & ~(1 << p); voted_digest[p] = 0; p = 0 }
    :: atomic { PERSONS > 1 && state == PENDING -> move(REJECTED); is_unseen[0] = true; is_unseen[1] = true }
    :: atomic { !IS_FINAL(state) -> move(CANCELLED); is_unseen[0] = true; is_unseen[1] = true }
    :: atomic { PERSONS > 1 && state == PENDING && group == 1 -> group = 3 }
    :: atomic {
        stops < STOPS && !IS_FINAL(state) -> stops++;
        if :: p = 0 :: p = 1 fi;
        is_stopped[p] = true;
        if :: is_for_ever[p] = !is_for_ever[1 - p] :: skip fi;
        if
        :: skip
        :: is_crashed[p] = true;
            is_unsure[p] = false; is_late[p] = false; own_epoch[p] = 0; is_waiting[p] = false;
            if
            :: p == 0 -> leave(0); leave(1)
            :: else -> leave(2)
            fi
        fi;
        p = 0
    }
    :: break
    od
}

init
{
    atomic {
        run worker(0, 0); run worker(1, 0); run worker(2, 1);
        run store(0); run store(1)
    }
}

#define IS_SERVED(r) (is_answered[r] || is_for_ever[r])
ltl every_task_ends_and_every_client_is_answered {
    <>(IS_FINAL(state) && IS_SERVED(0) && IS_SERVED(1))
}
